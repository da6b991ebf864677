// Types of pgpass, which has none of its own.
declare module "pgpass" {
  interface Pgpass {
    /** Reads PGPASSFILE or ~/.pgpass, unless PGPASSWORD is set. */
    (
      connection: { host: string; port: number; database: string; user: string },
      found: (password?: string) => void,
    ): void;
    /** Sets the stream for warnings; the default is standard error. */
    warnTo(stream: NodeJS.WritableStream): void;
  }
  const pgpass: Pgpass;
  export default pgpass;
}
