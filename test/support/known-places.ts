// The constant key and machine id with which tests identify destinations.
import { keyRing } from "../../src/journal/keys.ts";
import type { MachineId } from "../../src/disk/machine-id.ts";

const digests = keyRing({ read: () => ["a-journal-key-of-the-tests-0123456789"] }).digests;
export const machine: MachineId = { find: () => "machine-1", make: () => "machine-1", copy: () => "machine-1" };
export const known = { digests, machine };
