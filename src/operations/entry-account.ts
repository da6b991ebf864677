// Checks whether a profile still has the account that an entry was made for.
import { Failure } from "../errors.ts";
import { type NextStep, shell } from "../next-step.ts";
import { type Entry, kindOf, nextStep } from "../journal/entry.ts";
import type { Account } from "./workbench.ts";

interface BoundProfile extends Pick<Account, "profileId" | "baseUrl" | "principal"> {
  readonly organizationId?: string | null | undefined;
}

/** @param isShared true for a team's journal: profile ids differ between machines, so they are not compared */
export function otherAccount(entry: Entry, profile: BoundProfile, isShared: boolean): Failure | undefined {
  const { profileId, baseUrl, organizationId, principal } = profile;
  const isOther = isShared
    ? principal !== undefined && entry.principal !== undefined && principal !== entry.principal
    : profileId !== entry.profile_id;
  const moved =
    (baseUrl !== entry.base_url && `points at ${baseUrl} now, and the entry was made for ${entry.base_url}`) ||
    // Without an organization id, the credential alone chose the organization.
    (entry.organization_id !== null &&
      organizationId?.toLowerCase() !== entry.organization_id.toLowerCase() &&
      "is bound to another organization now") ||
    (isOther && "is another profile of the same name");
  if (!moved) return undefined;
  return new Failure("auth", `Profile "${entry.profile}" ${moved}.`, {
    meaning: "Nothing was sent: the idempotency key and the client belong to the original account.",
    ...(entry.profile === "env"
      ? setEnvironment(entry)
      : {
          hint: "Put the profile back as it was, or stop tracking the change with integ journal forget.",
          nextCommand:
            entry.state === "undelivered"
              ? shell`integ journal claim ${entry.id}`
              : shell`integ journal show ${entry.id}`,
        }),
  });
}

/** The settings are only a hint, because a command with them would show a credential. */
export function setEnvironment(entry: Entry): NextStep {
  const { base_url, region, organization_id, principal } = entry;
  const credential =
    kindOf(entry) === "access_key"
      ? "INTEG_ACCESS_TOKEN"
      : principal === undefined
        ? "INTEG_API_KEY"
        : `INTEG_CLIENT_ID=${principal} with INTEG_CLIENT_SECRET and INTEG_TOKEN_ENDPOINT`;
  const organization = organization_id === null ? "" : ` INTEG_ORGANIZATION_ID=${organization_id}`;
  const address = `INTEG_BASE_URL=${base_url} INTEG_REGION=${region}${organization}`;
  const without = organization_id === null ? ", and leave INTEG_ORGANIZATION_ID unset" : "";
  return { hint: `Set ${address} and ${credential}${without}.`, nextCommand: nextStep(entry) ?? undefined };
}
