// `--secret-to keychain:<service>/<account>`: the operating system's keychain.
import { flags } from "../next-step.ts";
import { Failure, invalidValue } from "../errors.ts";
import { type KeychainAnswer, openKeychain } from "../profiles/keychain.ts";
import type { OpenStore } from "./store.ts";

const ownService = "integ";

export const open: OpenStore = (address, { env, signal }) => {
  const { service, account } = placeIn(address);
  const keychain = openKeychain({ env, signal, service });
  return {
    address: `${service}/${account}`,
    check: async () => ({}),
    async prepare() {
      const answer = await keychain.probe(`integ probe ${process.pid}`);
      if (!answer.ok) throw unusable(address, answer.why, "usage");
      return {};
    },
    async write(text) {
      const answer = await keychain.set(account, text);
      if (!answer.ok) throw unusable(address, answer.why, "undelivered");
      return true;
    },
    async look() {
      const text = secretOf(await keychain.get(account), address);
      return text === undefined ? { is: "absent" } : { is: "text", text };
    },
  };
};

function placeIn(address: string): { readonly service: string; readonly account: string } {
  const [, service = "", account = ""] = /^([^/]+)\/(.+)$/.exec(address) ?? [];
  if (service === "" || /\p{Cc}/u.test(address))
    throw invalidValue(flags.secretTo, `keychain:${address}`, {
      why: "it is not keychain:<service>/<account>",
      hint: `Write it like ${flags.secretTo} keychain:my-service/my-account.`,
    });
  if (service === ownService)
    throw new Failure(
      "usage",
      `${flags.secretTo} keychain:${address}: integ keeps its own credentials under "${service}".`,
      {
        hint: "Name another service.",
      },
    );
  return { service, account };
}

function secretOf(answer: KeychainAnswer, address: string): string | undefined {
  if (answer.ok) return answer.secret ?? undefined;
  throw unusable(address, answer.why, "unreachable");
}

function unusable(address: string, why: string, kind: "usage" | "undelivered" | "unreachable"): Failure {
  return new Failure(kind, `${flags.secretTo} keychain:${address}: the keychain cannot be used: ${why}.`, {
    hint: "Unlock the keychain or start its service, or name another destination.",
  });
}
