// Owns: what the rest of the program may ask of the sandbox. Must not know: how any of it works.
export type { RegionDescription, SandboxDescription } from "./description.ts";
export { checkFault, faultKeys } from "./fault.ts";
export { describeSandbox, resetSandbox, type RunningSandbox, startSandbox } from "./server.ts";
export type { SandboxSettings } from "./settings.ts";
