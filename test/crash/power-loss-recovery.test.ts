// Cuts the power during a recovery or a claim, also after a killed command.
import { claim, create, recover, recoverUnsent } from "./client-scenes.ts";
import { powerCuts } from "./power-loss.ts";
import { clientWork } from "./power-loss-scenes.ts";
import { afterKill, type CutState } from "./power-loss-states.ts";

/** True right after integ cuts a reserved file to the secret's length, before it syncs and names the file. */
function isCutToLength({ last }: Pick<CutState, "last">): boolean {
  return last?.kind === "cut" && last.length < 1000;
}

function isFolderCreated({ last }: Pick<CutState, "last">): boolean {
  return last?.kind === "create" && last.path === "state";
}

function isNamed({ last }: Pick<CutState, "last">): boolean {
  return last?.kind === "link" && last.to === "client.secret";
}

powerCuts("recovery", [
  clientWork(recover),
  clientWork(recoverUnsent),
  afterKill({ name: "journal recover (the name was not given)", first: clientWork(create) }, isCutToLength),
  afterKill({ name: "journal recover (the name was given)", first: clientWork(create) }, isNamed),
  afterKill(
    { name: "oauth-clients create (the folder was made)", first: clientWork(create), words: "again" },
    isFolderCreated,
  ),
  clientWork(claim),
]);
