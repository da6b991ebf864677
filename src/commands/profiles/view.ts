// Shows where a profile's secret is stored, not the secret.
import type { ResourceView } from "../../output/formats/format.ts";
import { type Profile, credentialPlace } from "../../profiles/profile.ts";

export const profileColumns = [
  { path: "name", heading: "name", kind: "id" },
  { path: "default", heading: "default" },
  { path: "region", heading: "region" },
  { path: "base_url", heading: "base url" },
  { path: "credential.kind", heading: "credential" },
  { path: "credential.kept_in", heading: "kept in" },
] as const;

/** The token endpoint is the client's own or, with an API key, the one that proves new clients. */
export const profileView = (profile?: Profile): ResourceView => ({
  omitsEmpty: true,
  columns: [
    ...profileColumns.slice(0, 4),
    { path: "organization_id", heading: "organization" },
    { path: "service_version", heading: "service version" },
    { path: "credential.kind", heading: "credential" },
    { path: "credential.kept_in", heading: "kept in" },
    { path: "credential.secret", heading: "secret" },
    { path: "credential.key_id", heading: "key id" },
    { path: "credential.basic_style", heading: "basic style" },
    { path: "credential.client_id", heading: "client id" },
    {
      path: `${profile?.credential?.kind === "client_credentials" ? "credential" : "oauth"}.token_endpoint`,
      heading: "token endpoint",
    },
    { path: "legacy.kind", heading: "legacy token" },
    { path: "journal", heading: "journal" },
  ],
});

export function profileRow(profile: Profile, defaultName: string | null): string {
  const { credential } = profile;
  return JSON.stringify({
    object: "profile",
    name: profile.name,
    default: profile.name === defaultName,
    region: profile.region,
    base_url: profile.base_url,
    organization_id: profile.organization_id ?? null,
    service_version: profile.service_version ?? null,
    credential: credential && {
      kind: credential.kind,
      kept_in: credentialPlace(profile),
      secret: "••••••••",
      ...(credential.kind === "api_key"
        ? { basic_style: credential.basic_style, key_id: credential.key_id ?? null }
        : {
            client_id: credential.client_id,
            token_endpoint: credential.token_endpoint,
            audience: credential.audience ?? null,
            issuer: credential.issuer ?? null,
            scope: credential.scope ?? null,
            client_auth: credential.client_auth,
          }),
    },
    legacy: profile.legacy ?? null,
    oauth: profile.oauth ?? null,
    journal: profile.journal ?? null,
    journal_key_command: profile.journal_key_command ?? null,
    escrow: profile.escrow ?? null,
    destinations: profile.destinations ?? null,
  });
}

export function sandboxRow(name: string, region: string, defaultName: string | null): string {
  return JSON.stringify({
    object: "profile",
    name,
    default: name === defaultName,
    region,
    base_url: `sandbox://${region}`,
    organization_id: null,
    service_version: null,
    credential: { kind: "api_key", kept_in: "sandbox", secret: "••••••••", basic_style: "apikey-user", key_id: null },
    legacy: null,
    oauth: null,
  });
}
