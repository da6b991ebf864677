/** True if this machine lacks one of these tools: its tests are skipped, or fail if INTEG_TEST_REQUIRE_TOOLS is 1. */
export function isMissing(...names: readonly string[]): boolean;

export function missingTools(): string[];
