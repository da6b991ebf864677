// The types of the one module of pg that is loaded, by itself: its index would load a pool and look for a native driver.
// The version is pinned: the path is part of what is pinned.

declare module "pg/lib/client.js" {
  import type { EventEmitter } from "node:events";
  import type { SecureContextOptions } from "node:tls";

  export interface ClientConfig {
    readonly host: string;
    readonly port: number;
    readonly user: string;
    readonly database: string;
    readonly password: () => Promise<string>;
    readonly ssl:
      | false
      | (SecureContextOptions & {
          readonly rejectUnauthorized: boolean;
          readonly checkServerIdentity?: () => undefined;
        });
    readonly sslnegotiation: "postgres";
    readonly application_name: string;
    readonly keepAlive: boolean;
  }

  export default class Client extends EventEmitter {
    constructor(config: ClientConfig);
    readonly connection: { readonly stream: { destroy(error?: Error): void } };
    readonly connectionParameters: { options?: string | undefined };
    connect(): Promise<unknown>;
    query(text: string, values?: readonly unknown[]): Promise<{ readonly rows: readonly Record<string, unknown>[] }>;
    end(): Promise<void>;
  }
}
