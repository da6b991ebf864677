/** Whether one of these tools is not on this machine: its tests are skipped, or fail where INTEG_TEST_REQUIRE_TOOLS is 1. */
export function isMissing(...names: readonly string[]): boolean;

/** Names of the tools that are not on this machine. */
export function missingTools(): string[];
