// The stores of `--secret-to`, as help, completion and questions name them. Pure: registry.ts opens them.

/** One line a store: how its address is written, what it is, and what proves a delivery. */
export const storeKinds = {
  vault: {
    form: "vault:<mount>/<path>#<field>",
    what: "A field in HashiCorp Vault or OpenBao (KV version 2)",
    proof: "read back",
  },
  github: {
    form: "github:<owner>/<repo>[@<environment>]#<NAME>",
    what: "A secret of GitHub Actions",
    proof: "changed, as GitHub says",
  },
  k8s: {
    form: "k8s:<namespace>/<secret>#<key>",
    what: "A key of a Kubernetes Secret, through kubectl",
    proof: "read back",
  },
  keychain: { form: "keychain:<service>/<account>", what: "The keychain of the operating system", proof: "read back" },
} as const satisfies Readonly<Record<string, StoreKind>>;

export interface StoreKind {
  readonly form: string;
  readonly what: string;
  /** What shows that a secret arrived. */
  readonly proof: string;
}

export type StoreScheme = keyof typeof storeKinds;
