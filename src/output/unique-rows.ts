// Leaves out rows whose id was there before.
import type { RowPage } from "./row-page.ts";

export class UniqueRows {
  readonly #seen = new Set<unknown>();

  /** The page without repeated rows. A row without an id is no one's repeat. */
  of(page: RowPage): RowPage {
    return page.filter((row) => {
      const id = row.parts().get("id");
      // §2.2: an id is a string. A number may have lost digits on the way here, and is no one's repeat.
      if (!id?.isString) return true;
      const { size } = this.#seen;
      return this.#seen.add(id.value).size > size;
    });
  }
}
