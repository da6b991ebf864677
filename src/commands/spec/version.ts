// Owns: which published document is meant: the current one, or the snapshot of one contract version (§4.5, §9).
// Must not know: the documents.
import type { Context } from "../../context.ts";
import { Failure } from "../../errors.ts";

/**
 * What was named: by `--contract-version`, else by the version that requests are pinned to (`--service-version`,
 * `INTEG_SERVICE_VERSION`). A profile's own version names none: the current document is then what is asked for.
 * @returns undefined where none is named
 * @throws Failure `usage` where two different ones are
 */
export function documentVersion(
  { settings }: Context,
  { contractVersion }: { readonly contractVersion?: string },
): string | undefined {
  const { serviceVersion } = settings;
  if (contractVersion !== undefined && serviceVersion !== undefined && contractVersion !== serviceVersion)
    throw new Failure(
      "usage",
      `--contract-version ${contractVersion} and the service version ${serviceVersion} name two documents.`,
      { hint: "Keep one of --contract-version, --service-version and INTEG_SERVICE_VERSION." },
    );
  return contractVersion ?? serviceVersion;
}
