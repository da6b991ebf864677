// People and memberships of the legacy contract (§4.4), with undocumented responses.
import { Failure } from "../errors.ts";
import type { Attempt } from "./call/attempt.ts";
import { type Caller, jsonBytesOf, jsonOf } from "./call/caller.ts";
import { type Pair, query, segment } from "./call/request.ts";
import { readRows, type Rows } from "./json/unknown-list.ts";
import { shell, flags } from "../next-step.ts";

export interface PeopleSearch {
  readonly text?: string;
  /** If not empty, replaces `text`. */
  readonly params?: readonly Pair[];
}

export interface People {
  search(request: PeopleSearch): Promise<Attempt<Rows>>;
  membership(personId: string): Promise<Attempt<unknown>>;
}

export function createPeople(legacy: Caller): People {
  return {
    // @assumed §4.4 shows no parameters and response: integ sends `query`, and accepts an array, or an object with one.
    search: async (request) =>
      legacy.send(
        { method: "GET", path: `/api/v1/people/search${query(parametersOf(request))}`, success: [200] },
        (answer) => readRows(jsonBytesOf(answer)),
      ),
    // @assumed §4.4 does not show the response: integ accepts any JSON.
    membership: async (personId) =>
      legacy.send(
        { method: "GET", path: `/api/v1/people/${segment(personId, "person id")}/membership`, success: [200] },
        (answer) => jsonOf(answer).value,
      ),
  };
}

function parametersOf({ text, params = [] }: PeopleSearch): readonly Pair[] {
  if (params.length > 0) {
    if (params.some(([name]) => name === ""))
      throw new Failure("usage", "A parameter has no name.", { hint: `Write ${flags.param} name=value.` });
    return params;
  }
  if (text === undefined || text === "")
    throw new Failure("usage", "The search text is empty.", { nextCommand: shell`integ help people search` });
  return [["query", text]];
}
