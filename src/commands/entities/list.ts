import { printList, addListOptions } from "../running/list-walk.ts";
import { defineVerb } from "../verb.ts";

const view = {
  columns: [
    { path: "id", heading: "id" },
    { path: "type", heading: "type" },
    { path: "status", heading: "status", kind: "status" },
    { path: "display_name", heading: "name" },
    { path: "email", heading: "email" },
    { path: "created_at", heading: "created", kind: "time", isDetail: true },
    { path: "updated_at", heading: "updated", kind: "time", isDetail: true },
  ] as const,
  extraColumns: [{ path: "object", heading: "object" }],
  singular: "entity",
  plural: "entities",
};

export const command = defineVerb({
  isPaged: true,
  fields: view.columns.map(({ path }) => path),
  configure: (command) => addListOptions(command.option("--type <type>", "Only entities of this type, such as person")),
  examples: [
    { line: "integ entities list --profile sandbox", does: "one page, with no account" },
    { line: "integ entities list --all --json | jq '.data[].email'", does: "every entity, for a script" },
    { line: "integ entities list --type person --limit 500 --ndjson", does: "one row per line" },
  ],
  async run(context, { options }) {
    await printList(
      context,
      { ...view, columns: [...view.columns] },
      {
        flags: options,
        name: options.type === undefined ? "entities" : `entities of type ${options.type}`,
        pagesOf: (service) => (request) =>
          service.entities.page(options.type === undefined ? request : { ...request, type: options.type }),
      },
    );
  },
});
