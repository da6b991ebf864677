// Rows that are found by what they hold, however many there are, and that say what a change did to them.

/** What one change did to a table: rows by their place. Rows are never removed. */
export type RowChange<Row> = readonly [place: number, row: Row];

export class Table<Row extends object> {
  readonly #rows: Row[];
  /** Places of rows by the value of a field; made when a field is first asked for. */
  readonly #places = new Map<keyof Row, Map<unknown, number[]>>();
  /** Rows that the change under way was handed, as they were before. */
  readonly #handed = new Map<number, string>();
  #before: number;

  constructor(rows: readonly Row[] = []) {
    this.#rows = [...rows];
    this.#before = rows.length;
  }

  /** To be read, not changed. */
  get rows(): readonly Row[] {
    return this.#rows;
  }

  /** The first row that has the value in that field. A change may change it. */
  by(field: keyof Row, value: unknown): Row | undefined {
    return this.all(field, value)[0];
  }

  /** Every row that has the value in that field, in their order. A change may change them. */
  all(field: keyof Row, value: unknown): Row[] {
    return this.#placesOf(field, value).map((place) => {
      const row = this.#rows[place]!;
      if (place < this.#before && !this.#handed.has(place)) this.#handed.set(place, JSON.stringify(row));
      return row;
    });
  }

  /** The same to be read, not changed. */
  having(field: keyof Row, value: unknown): readonly Row[] {
    return this.#placesOf(field, value).map((place) => this.#rows[place]!);
  }

  push(row: Row): void {
    this.#rows.push(row);
    this.#note(this.#rows.length - 1);
  }

  toJSON(): readonly Row[] {
    return this.#rows;
  }

  /** What happened since the last `begin`. */
  changes(): RowChange<Row>[] {
    const changed = [...this.#handed].flatMap(([place, before]): RowChange<Row>[] => {
      const row = this.#rows[place]!;
      return JSON.stringify(row) === before ? [] : [[place, row]];
    });
    const added = this.#rows.slice(this.#before).map((row, index): RowChange<Row> => [this.#before + index, row]);
    return [...changed, ...added];
  }

  /** From here on what happens is reported as one change. */
  begin(): void {
    for (const [place] of this.changes()) this.#renote(place);
    this.#handed.clear();
    this.#before = this.#rows.length;
  }

  /** Everything is again as at the last `begin`. */
  undo(): void {
    for (const [place, before] of this.#handed) this.#rows[place] = JSON.parse(before) as Row;
    this.#rows.length = this.#before;
    this.#handed.clear();
    this.#places.clear();
  }

  /** What another process did. */
  apply(changes: readonly RowChange<Row>[]): void {
    for (const [place, row] of changes) {
      this.#rows[place] = row;
      this.#renote(place);
    }
    this.#before = this.#rows.length;
  }

  #placesOf(field: keyof Row, value: unknown): readonly number[] {
    let places = this.#places.get(field);
    if (places === undefined) {
      places = new Map();
      this.#places.set(field, places);
      for (const [place, row] of this.#rows.entries()) put(places, row[field], place);
    }
    // A row may have changed since it was noted.
    return (places.get(value) ?? []).filter((place) => this.#rows[place]?.[field] === value);
  }

  #note(place: number): void {
    for (const [field, places] of this.#places) put(places, this.#rows[place]![field], place);
  }

  #renote(place: number): void {
    for (const [field, places] of this.#places) {
      const value = this.#rows[place]![field];
      if (!places.get(value)?.includes(place)) put(places, value, place);
    }
  }
}

function put(places: Map<unknown, number[]>, value: unknown, place: number): void {
  const there = places.get(value);
  if (there) there.push(place);
  else places.set(value, [place]);
}
