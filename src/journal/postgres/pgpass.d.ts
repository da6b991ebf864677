// The types of pgpass, which publishes none.
declare module "pgpass" {
  interface Pgpass {
    /** Reads PGPASSFILE or ~/.pgpass, and nothing if PGPASSWORD is set. */
    (
      connection: { host: string; port: number; database: string; user: string },
      found: (password?: string) => void,
    ): void;
    /** Where warnings go; at first to standard error. */
    warnTo(stream: NodeJS.WritableStream): void;
  }
  const pgpass: Pgpass;
  export default pgpass;
}
