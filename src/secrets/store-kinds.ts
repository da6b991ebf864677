// The stores of `--secret-to`, as help, completion and questions name them. Pure: registry.ts opens them.

/** One line a store: how its address is written, and what it is. */
export const storeKinds = {
  keychain: { form: "keychain:<service>/<account>", what: "the keychain of the operating system" },
} as const satisfies Readonly<Record<string, StoreKind>>;

export interface StoreKind {
  readonly form: string;
  readonly what: string;
}

export type StoreScheme = keyof typeof storeKinds;

/** What can be asked for where a secret goes: the option, what follows it, and what it does. */
export interface DestinationKind {
  readonly option: "secretFile" | "secretCommand" | "secretProfile" | "secretTo";
  readonly form: string;
  readonly what: string;
}

/** Every kind of destination but the screen, in the order in which a person is offered them. */
export const destinationKinds: readonly DestinationKind[] = [
  { option: "secretFile", form: "<path>", what: "a new file, readable by you alone" },
  { option: "secretCommand", form: "<command>", what: "the standard input of a command" },
  { option: "secretProfile", form: "<name>", what: "the credential of an existing profile" },
  ...Object.values(storeKinds).map(({ form, what }) => ({ option: "secretTo", form, what }) as const),
];
