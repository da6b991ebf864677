// Generates any character, including lone surrogates. fast-check's own generator first builds a slow table of all
// characters.
import fc from "fast-check";

const character = (most: number): fc.Arbitrary<string> => fc.nat(most).map((code) => String.fromCodePoint(code));

/** Controls and letters are more frequent than the rest of Unicode. */
export const anyCharacter: fc.Arbitrary<string> = fc.oneof(character(0xff), character(0xffff), character(0x10_ffff));
