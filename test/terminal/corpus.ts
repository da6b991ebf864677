// Text that a hostile service might send, which a terminal could interpret, a reader not see, or a filter break.

const esc = "\u001b";
const bel = "\u0007";
const st = `${esc}\\`;

/** CSI sequences: clear, move, scroll, erase, insert, delete; colors; modes; reports; window, margins, cursor. */
const csi = [
  "2J 3J H 1;1H 5A 9B 9C 9D E F 10G K 1K 2K L M P X @ S T",
  "31m 1;4;7m 38;5;196m 48;2;255;0;0m 8m 0m ?25l ?1049h ?47h ?1000h ?1006h ?2004h",
  "4h 20h ?7l ?5h 5n 6n c >c =c ?6n 18t 21t 8;1;1t 3;5r s u !p",
].flatMap((bodies) => bodies.split(" ").flatMap((body) => [`${esc}[${body}`, `\u009b${body}`]));

/** OSC sequences that set title, icon, palette, directory, link, clipboard, notification and colors. */
const osc = [
  "0;owned 1;owned 2;owned 4;1;#ff0000 7;file:///x 8;;http://evil.example 52;c;b3duZWQ= 9;owned",
  "10;#ff0000 11;#ff0000 12;? 104 777;notify;owned;x 1337;File=inline=1:AAAA 633;A 133;A",
].flatMap((bodies) =>
  bodies.split(" ").flatMap((body) => [`${esc}]${body}${bel}`, `${esc}]${body}${st}`, `\u009d${body}\u009c`]),
);

/** DCS (sixel, DECRQSS, tmux), APC, PM and SOS strings, in seven bits and in eight. */
const longStrings = "Pq#0;2;0;0;0#0~~@@vv P$qm Ptmux;x _Gf=24;AAAA ^private Xstring"
  .split(" ")
  .map((body) => esc + body + st)
  .concat("\u0090q~~\u009c", "\u009fx\u009c", "\u009ex\u009c", "\u0098x\u009c");

/** One-character escapes: reset, index, save, keypad, character sets, alignment, encodings. */
const short = "c D E H M N O Z 7 8 = > (0 )B *A #8 %G %@ n o |".split(" ").map((body) => esc + body);

/** Unterminated sequences must not swallow the text after them. */
const open = "[ ]0; P _ [38;5".split(" ").map((body) => esc + body);
const openShort = [esc, "\u009b", "\u009d", "\u0090", "\u009f"];

const overwriting = [
  "\b\b\b\b\b\b\b\bError: ok",
  "\rError: ok",
  "a\nError: ok\n",
  "\r\n",
  "\v\v",
  "\f",
  "\t\t\t",
  "\u0085Error: ok",
  "\u008dError: ok",
];

/** Bidi, zero-width, tags, separators, fillers, variation selectors, lone surrogates, noncharacters, annotations. */
const unseen = [
  "\u202egpj.exe",
  "\u2066a\u2067b\u2068c\u2069",
  "\u202aa\u202bb\u202c",
  "\u061c\u200e\u200f",
  "a\u2028b\u2029c",
  "pay\u200bpal",
  "a\u200cb\u200dc\u2060d\ufeffe\u00adf\u034fg\u180eh",
  "\u115f\u1160\u3164\uffa0",
  "x\ufe0e\ufe0f",
  "a\u{e0001}\u{e0041}\u{e007f}b",
  "x\u{e0100}y",
  "\ud800",
  "\udfff",
  "\udc00\ud800",
  "a\uffffb\ufffe",
  "\ufff9a\ufffbb\ufffa",
];

/** Over-eager filters often break such harmless text. */
const harmless = ["z\u0335\u0336\u0337\u0338\u0489\u0301".repeat(5), "𝓗𝓮𝓵𝓵𝓸", "👩\u200d👩\u200d👧", "日本語", "é", ""];

const everyControl = Array.from({ length: 0xa0 }, (_, code) => code)
  .filter((code) => code < 0x20 || code >= 0x7f)
  .map((code) => `a${String.fromCharCode(code)}b`);

/** None of these strings, alone or within a text, may have an effect on the terminal. */
export const corpus: readonly string[] = everyControl
  .concat(csi, osc, longStrings, short, open, openShort, overwriting, unseen, harmless)
  .flatMap((text) => [text, `before ${text} after`]);
