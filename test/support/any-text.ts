// Text of any characters, halves of surrogate pairs too. (The library's own unit of that kind fills a table of all characters
// in each process, which takes longer than most properties.)
import fc from "fast-check";

const character = (most: number): fc.Arbitrary<string> => fc.nat(most).map((code) => String.fromCodePoint(code));

/** One character: a control or a letter more often than one from anywhere in Unicode. */
export const anyCharacter: fc.Arbitrary<string> = fc.oneof(character(0xff), character(0xffff), character(0x10_ffff));
