// The stores of `--secret-to`, as help, completion and questions name them. Pure: registry.ts opens them.

/** One line a store: how its address is written, and what it is. */
export const storeKinds = {
  vault: { form: "vault:<mount>/<path>#<field>", what: "A field in HashiCorp Vault or OpenBao (KV version 2)" },
  github: { form: "github:<owner>/<repo>[@<environment>]#<NAME>", what: "A secret of GitHub Actions" },
  k8s: { form: "k8s:<namespace>/<secret>#<key>", what: "A key of a Kubernetes Secret, through kubectl" },
  keychain: { form: "keychain:<service>/<account>", what: "The keychain of the operating system" },
} as const satisfies Readonly<Record<string, StoreKind>>;

export interface StoreKind {
  readonly form: string;
  readonly what: string;
}

export type StoreScheme = keyof typeof storeKinds;
