// Finds a key in the list, because the legacy contract has no request for one key (§4.4).
import { type AccessKey, readAccessKey } from "../../api/access-keys.ts";
import type { Service } from "../../api/connect.ts";
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";
import { read } from "../running/read.ts";
import { shell } from "../../next-step.ts";

export interface FoundKey {
  readonly key: AccessKey & { readonly id: string };
  readonly text: string;
}

/**
 * An id takes precedence over a name, and an active key over other keys of the same name.
 * @throws Failure `not_found`; `conflict` if several keys match equally well; `usage` for an empty id
 */
export async function findKey(context: Context, { accessKeys }: Service, typed: string): Promise<FoundKey> {
  if (typed.trim() === "")
    throw new Failure("usage", "The key's id is empty.", { nextCommand: shell`integ keys list` });
  const { value } = await read(context, "list access keys", () => accessKeys.list());
  const all = value.rows.flatMap(({ value: row, text }): FoundKey[] => {
    const key = readAccessKey(row);
    return key.id === undefined ? [] : [{ key: { ...key, id: key.id }, text }];
  });
  const byId = all.find(({ key }) => key.id === typed);
  if (byId !== undefined) return byId;
  const named = all.filter(({ key }) => key.name === typed);
  const active = named.filter(({ key }) => key.status === "active");
  const candidates = active.length > 0 ? active : named;
  if (candidates.length === 1) return candidates[0]!;
  if (candidates.length > 1)
    throw new Failure(
      "conflict",
      `${candidates.length} keys have the name "${typed}": ${candidates.map(({ key }) => key.id).join(", ")}.`,
      {
        meaning: "Nothing was changed. Name one of them by its id.",
      },
    );
  const isWhole = !value.saysMore && all.length === value.rows.length;
  throw new Failure("not_found", `No key of the list has the id or the name "${typed}".`, {
    meaning: isWhole ? undefined : "The list may not be whole.",
    nextCommand: shell`integ keys list`,
  });
}
