// Rows that are found by what they hold, however many there are, and that say what a change did to them.

/** What one change did to a table: rows by their place. Rows are never removed. */
export type RowChange<Row> = readonly [place: number, row: Row];

export class Table<Row extends object> {
  readonly #rows: Row[];
  /** Places of rows by the value of a field, of all or of those that fit; made when it is first asked for. */
  readonly #indexes = new Map<string, Index<Row>>();
  /** Where rows of the change under way were noted. */
  readonly #noted: (readonly [index: Index<Row>, value: unknown])[] = [];
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
  by(field: keyof Row & string, value: unknown): Row | undefined {
    return this.all(field, value)[0];
  }

  /** Every row that has the value in that field, in their order. A change may change them. */
  all(field: keyof Row & string, value: unknown): Row[] {
    return this.#placesOf(field, value).map((place) => {
      const row = this.#rows[place]!;
      if (place < this.#before && !this.#handed.has(place)) this.#handed.set(place, JSON.stringify(row));
      return row;
    });
  }

  /** The same to be read, not changed. */
  having(field: keyof Row & string, value: unknown): readonly Row[] {
    return this.#placesOf(field, value).map((place) => this.#rows[place]!);
  }

  /** Those of them that fit. One that once did not is looked at again only after a change of it. */
  fitting(field: keyof Row & string, value: unknown, fits: NamedTest<Row>): readonly Row[] {
    return this.#placesOf(field, value, fits).map((place) => this.#rows[place]!);
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
    for (const place of this.#handed.keys()) this.#renote(place);
    for (let place = this.#before; place < this.#rows.length; place += 1) this.#renote(place);
    this.#handed.clear();
    this.#noted.length = 0;
    this.#before = this.#rows.length;
  }

  /** Everything is again as at the last `begin`. */
  undo(): void {
    for (const [{ places }, value] of this.#noted) {
      const list = places.get(value) ?? [];
      const first = list.findIndex((place) => place >= this.#before);
      if (first !== -1) list.splice(first);
    }
    this.#noted.length = 0;
    this.#rows.length = this.#before;
    for (const [place, before] of this.#handed) {
      this.#rows[place] = JSON.parse(before) as Row;
      this.#renote(place);
    }
    this.#handed.clear();
  }

  /** What another process did. */
  apply(changes: readonly RowChange<Row>[]): void {
    for (const [place, row] of changes) {
      this.#rows[place] = row;
      this.#renote(place);
    }
    this.#before = this.#rows.length;
  }

  #placesOf(field: keyof Row & string, value: unknown, fits?: NamedTest<Row>): readonly number[] {
    const name = fits === undefined ? field : `${field} ${fits.name}`;
    let index = this.#indexes.get(name);
    if (index === undefined) {
      index = { field, places: new Map() };
      this.#indexes.set(name, index);
      for (const [place, row] of this.#rows.entries()) put(index.places, row[field], place);
    }
    const places = index.places.get(value);
    if (places === undefined) return [];
    // A row may have changed since it was noted.
    const isThere = (place: number): boolean => {
      const row = this.#rows[place];
      return row !== undefined && row[field] === value && (fits === undefined || fits.test(row));
    };
    const left = places.filter(isThere);
    if (left.length < places.length) index.places.set(value, left);
    return left;
  }

  #note(place: number): void {
    for (const index of this.#indexes.values()) {
      const value = this.#rows[place]![index.field];
      put(index.places, value, place);
      this.#noted.push([index, value]);
    }
  }

  #renote(place: number): void {
    for (const { field, places } of this.#indexes.values()) {
      const value = this.#rows[place]![field];
      if (places.get(value)?.includes(place)) continue;
      put(places, value, place);
      // In the order of the rows.
      places.get(value)?.sort((a, b) => a - b);
    }
  }
}

interface Index<Row> {
  readonly field: keyof Row;
  readonly places: Map<unknown, number[]>;
}

/** A test of a row, and the name that its index has. */
export interface NamedTest<Row> {
  readonly name: string;
  readonly test: (row: Row) => boolean;
}

function put(places: Map<unknown, number[]>, value: unknown, place: number): void {
  const there = places.get(value);
  if (there) there.push(place);
  else places.set(value, [place]);
}
