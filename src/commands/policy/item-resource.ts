import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { assertTrusted } from "../../operations/acts/overwrite.ts";
import { shell } from "../../next-step.ts";
import type { ItemKind } from "../../policy/works.ts";

/**
 * @throws Failure `not_found` if the journal knows no credential of the item, `usage` if several policies have the item,
 * `auth` if an entry of it is untrusted
 */
export async function resourceOfItem(context: Context, kind: ItemKind, name: string): Promise<string> {
  const { itemOf, worksIn } = await import("../../policy/works.ts");
  const { baseUrl, organizationId = null } = await context.profiles.active();
  const journal = await context.journal();
  const works = await worksIn(journal, { baseUrl, organizationId });
  const ofItem = [...works].filter(([key]) => itemOf(key).kind === kind && itemOf(key).name === name);
  const matches = ofItem.flatMap(
    ([
      key,
      {
        candidates: [id],
      },
    ]) => (id === undefined ? [] : [[id, itemOf(key).policy]]),
  );
  const noun = kind === "oauth_client" ? "client" : "key";
  if (matches.length > 1)
    throw new Failure("usage", `${matches.length} policies have a ${noun} of an item "${name}".`, {
      meaning: "Nothing was sent.",
      hint: `Name the ${noun} by its id: ${matches.map(([id, policy]) => `${id} (policy ${policy})`).join(" or ")}.`,
    });
  await assertTrusted(
    { journal },
    ofItem.flatMap(([, one]) => one.works.map(({ entry }) => entry)),
  );
  if (matches[0]?.[0] !== undefined) return matches[0][0];
  throw new Failure("not_found", `The journal knows no ${noun} of an item "${name}".`, {
    meaning: "Nothing was sent.",
    nextCommand: kind === "oauth_client" ? shell`integ oauth-clients list` : shell`integ keys list`,
  });
}

/**
 * Follows finished rotations, except those that kept the old credential, to the newest successor. A person confirms it
 * at a terminal; without a terminal or with `--yes`, integ warns.
 * @returns `id` if it has no successor
 * @throws Failure `usage` if the person declines
 */
export async function newestSuccessorOf(context: Context, id: string): Promise<string> {
  const journal = await context.journal();
  const { baseUrl } = await context.profiles.active();
  const seen = new Set([id]);
  let current = id;
  for (;;) {
    const next = (await journal.select({ states: ["done"], resource: current, trusted: true })).find(
      ({ operation, base_url, detail, resource_id }) =>
        operation.endsWith(".rotate") &&
        base_url === baseUrl &&
        (detail.old_client ?? detail.old_key ?? detail.key_id) === current &&
        detail.keep_old !== true &&
        resource_id !== null &&
        !seen.has(resource_id),
    )?.resource_id;
    if (next === undefined || next === null) break;
    seen.add(next);
    current = next;
  }
  if (current !== id) await confirmSuccessor(context, id, current);
  return current;
}

async function confirmSuccessor({ output, settings }: Context, id: string, successor: string): Promise<void> {
  const what = `${id} was rotated; its successor is ${successor}.`;
  if (!output.interactive || settings.yes) return output.warn(`${what} integ rotates the successor.`);
  if (await output.confirm(`${what} Rotate ${successor} instead of ${id}?`, { destructive: true })) return;
  throw new Failure("usage", "Nothing was rotated: the answer was no.");
}
