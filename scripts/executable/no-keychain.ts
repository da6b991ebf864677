// For src/profiles/keychain.ts: the keychain library is not in the executable, so credentials are in the file.
import type { KeychainAnswer, openKeychain as OpenKeychain } from "../../src/profiles/keychain.ts";

const absent = async (): Promise<KeychainAnswer> => ({ ok: false, why: "the keychain library is not installed" });

export const openKeychain: typeof OpenKeychain = () => ({ set: absent, get: absent, delete: absent, probe: absent });
