// Owns: which contract versions this program speaks (§9). Constants alone, so that nothing else is loaded with them.
// Must not know: anything else.

/** The version of /v1 that this program was written for (§9.1). */
export const contractVersion = "2026-07-01";
/** The legacy contract's label (§9.4). It is no value for `Service-Version`. */
export const legacyContractVersion = "2026-08-05";
