import { defineVerb } from "../verb.ts";
import { profileColumns, profileRow, sandboxRow } from "./view.ts";

export const command = defineVerb({
  fields: profileColumns.map(({ path }) => path),
  configure: (command) => command,
  examples: [
    { line: "integ profiles list", does: "all profiles; sandbox and sandbox-eu always exist" },
    { line: "integ profiles list --json | jq -r '.data[].name'", does: "their names, for a script" },
  ],
  async run(context) {
    const store = await context.profiles.store();
    const { default: chosen } = store;
    const list = context.output.list({
      columns: [...profileColumns],
      singular: "profile",
      plural: "profiles",
      isWhole: true,
    });
    await list.whole([
      ...store.list().map((profile) => profileRow(profile, chosen)),
      sandboxRow("sandbox", "us", chosen),
      sandboxRow("sandbox-eu", "eu", chosen),
    ]);
  },
});
