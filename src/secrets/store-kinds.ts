// The stores of `--secret-to`, as help, completion and questions name them. Pure: registry.ts opens them.

/** One line a store: how its address is written, and what it is. */
export const storeKinds = {
  vault: { form: "vault:<mount>/<path>#<field>", what: "HashiCorp Vault or OpenBao, a KV v2 engine" },
  github: { form: "github:<owner>/<repo>[@<environment>]#<NAME>", what: "GitHub Actions, a secret of a repository" },
  k8s: { form: "k8s:<namespace>/<secret>#<key>", what: "a Kubernetes Secret, through kubectl" },
  keychain: { form: "keychain:<service>/<account>", what: "the keychain of the operating system" },
} as const satisfies Readonly<Record<string, StoreKind>>;

export interface StoreKind {
  readonly form: string;
  readonly what: string;
}

export type StoreScheme = keyof typeof storeKinds;
