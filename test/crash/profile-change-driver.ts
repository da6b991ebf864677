// One process that gives a profile another credential, as `profiles edit` and `--secret-profile` do.
import { writeSync } from "node:fs";
import { editProfile } from "../../src/profiles/configure.ts";
import { credentialsAt } from "../../src/profiles/credentials.ts";
import { openProfileStore } from "../../src/profiles/store.ts";

const [, , configDir = ""] = process.argv;

async function change(): Promise<void> {
  const rooms = {
    store: await openProfileStore({ configDir }),
    credentials: credentialsAt({ configDir, keychain: "file", env: {} }),
  };
  const oauth = { token_endpoint: "https://id.example.com/token", client_auth: "client_secret_basic" } as const;
  await editProfile(rooms, "prod", {
    credential: { kind: "client_credentials", client_id: "new", secret: "canary-new", ...oauth },
  });
}

change().then(
  () => writeSync(1, "changed\n"),
  (error: unknown) => {
    process.exitCode = 1;
    writeSync(2, String(error));
  },
);
