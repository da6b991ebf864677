// Owns: a credential as it is given for a profile, and the form it is stored in. Pure.
// Must not know: files, keychains, flags. Design: cli.md §3.
import { Failure } from "../errors.ts";
import { checkEndpoint } from "./address.ts";
import type { SavedSecret } from "./credentials.ts";
import type { BasicStyle, OAuthSettings, StoredCredential } from "./profile.ts";

/** The secret part of a new credential: given now, or printed by a command at each use. */
export type GivenSecret = { readonly secret: string } | { readonly command: string };

export type NewCredential = GivenSecret &
  (
    | { readonly kind: "api_key"; readonly basic_style: BasicStyle; readonly key_id?: string }
    | ({ readonly kind: "client_credentials"; readonly client_id: string } & NewOAuthSettings)
  );

export interface NewOAuthSettings {
  readonly token_endpoint: string;
  readonly audience?: string;
  readonly issuer?: string;
  readonly client_auth: OAuthSettings["client_auth"];
}

/** A header and a line cannot carry control characters; most are the newline of a file that was read. */
export function checkSecret(secret: string, what: string): string {
  if (secret === "") throw new Failure("usage", `The ${what} is empty.`);
  if (/\p{Cc}/u.test(secret))
    throw new Failure("usage", `The ${what} holds a line break or another control character.`);
  return secret;
}

/** The credential as profiles.json keeps it, its secret elsewhere. */
export function storedForm(credential: NewCredential, saved: SavedSecret | undefined): StoredCredential {
  const place =
    "command" in credential
      ? { source: "command" as const, command: credential.command }
      : { source: "stored" as const, ref: saved!.ref, kept: saved!.kept };
  if (credential.kind === "api_key") {
    const { kind, basic_style, key_id } = credential;
    return { kind, basic_style, ...(key_id !== undefined && { key_id }), ...place };
  }
  const { kind, client_id, token_endpoint, audience, issuer, client_auth } = credential;
  return {
    kind,
    client_id,
    token_endpoint: checkEndpoint(token_endpoint, "The token endpoint"),
    ...(audience !== undefined && { audience }),
    ...(issuer !== undefined && { issuer }),
    client_auth,
    ...place,
  };
}
