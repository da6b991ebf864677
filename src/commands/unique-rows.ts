// Owns: dropping rows whose id was seen before (`--unique`). Its memory grows with the number of ids; nothing else's does.
import type { Page } from "../api/pages.ts";
import type { RowPage } from "../output/row-page.ts";

export class UniqueRows {
  readonly #seen = new Set<string>();

  /** The page without repeated rows. A row without an id is nobody's repeat. */
  of({ body, spans }: Page): RowPage {
    const kept: number[] = [];
    for (let at = 0; at < spans.length; at += 2) {
      const [from = 0, to = 0] = [spans[at], spans[at + 1]];
      const id = idOf(body.toString("utf8", from, to));
      if (id !== undefined && this.#seen.has(id)) continue;
      if (id !== undefined) this.#seen.add(id);
      kept.push(from, to);
    }
    return { body, spans: Uint32Array.from(kept) };
  }
}

function idOf(row: string): string | undefined {
  const { id } = JSON.parse(row) as { readonly id?: unknown };
  // §2.2: an id is a string. A number may have lost digits on the way here, and is nobody's repeat.
  return typeof id === "string" ? id : undefined;
}
