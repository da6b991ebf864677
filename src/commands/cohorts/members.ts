// The columns come from the rows, because the API document does not list a member's fields.
import { printList, addListOptions } from "../running/list-walk.ts";
import { defineVerb } from "../verb.ts";

export const command = defineVerb({
  isPaged: true,
  configure: (command) => addListOptions(command.argument("<cohort-id>", "Id of the cohort")),
  examples: [
    {
      line: "integ cohorts members cohort_us_large --profile sandbox",
      does: "one page; the API returns at most 50 members per page",
    },
    { line: "integ cohorts members coh_1 --all --ndjson", does: "every member, one per line" },
  ],
  async run(context, { args: [cohortId], options }) {
    await printList(
      context,
      { columns: [], singular: "member", plural: "members" },
      {
        flags: options,
        name: `members of cohort ${cohortId}`,
        pagesOf: (service) => (request) => service.cohorts.membersPage(cohortId, request),
      },
    );
  },
});
