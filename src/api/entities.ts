// Owns: the list of entities (§2.2, §4.3): its one-attempt request.
// Must not know: walking (pages.ts), what a row means: rows are handed on as they came.
// @assumed §2.2 shows some fields and not which are required: none is, and unknown ones pass
import { Failure } from "../errors.ts";
import type { Attempt } from "./http/attempt.ts";
import { type ListRequest, type RawPage, requestPage } from "./list-request.ts";
import type { V1 } from "./v1.ts";

export interface EntityListRequest extends ListRequest {
  /** `person` is known (§2.2). */
  readonly type?: string;
}

export interface Entities {
  /**
   * One page, one attempt. Needs permission `entity:read`.
   * @throws Failure `usage` for a limit outside 1 to 500, an empty page token, or the same filter named twice over
   */
  page(request: EntityListRequest): Promise<Attempt<RawPage>>;
}

export function createEntities(v1: V1): Entities {
  return {
    async page({ type, ...request }) {
      if (type === undefined) return requestPage(v1, "/v1/entities", request);
      const filters = request.filters ?? [];
      if (type === "") throw new Failure("usage", "The type is empty.", { hint: "--type person" });
      if (filters.some(([name]) => name === "type"))
        throw new Failure("usage", "The type is given twice.", { hint: "Use --type alone." });
      return requestPage(v1, "/v1/entities", { ...request, filters: [["type", type], ...filters] });
    },
  };
}
