import xterm, { type Terminal } from "@xterm/headless";

export interface Screen {
  /** The lines of text, with wrapped lines joined and trailing spaces removed. */
  readonly lines: readonly string[];
  /** Effects other than text: title, bell, the terminal's replies, size, other buffer, modes, colors. */
  readonly effects: readonly string[];
  readonly cursor: { readonly x: number; readonly y: number };
}

/** @param mayStyle true if colors and other attributes are expected, and not an effect */
export async function shown(output: string, { columns = 80, mayStyle = false } = {}): Promise<Screen> {
  const terminal = new xterm.Terminal({
    cols: columns,
    rows: 50,
    // A tab is at most eight columns wide, so this is the highest possible number of lines. A larger buffer is slow.
    scrollback: output.split("\n").length + Math.ceil((8 * output.length) / columns),
    convertEol: true,
    allowProposedApi: true,
    logLevel: "off",
    windowOptions: { setWinSizeChars: true, getWinTitle: true, getWinSizeChars: true, pushTitle: true, popTitle: true },
  });
  const effects: string[] = [];
  terminal.onTitleChange((title) => effects.push(`title ${JSON.stringify(title)}`));
  terminal.onBell(() => effects.push("bell"));
  terminal.onData((data) => effects.push(`answer ${JSON.stringify(data)}`));
  terminal.onBinary((data) => effects.push(`binary answer ${JSON.stringify(data)}`));
  terminal.onResize(() => effects.push("resize"));
  const modesBefore = JSON.stringify(terminal.modes);
  await new Promise<void>((resolve) => terminal.write(output, resolve));
  if (terminal.buffer.active.type !== "normal") effects.push("other buffer");
  if (JSON.stringify(terminal.modes) !== modesBefore) effects.push(`modes ${JSON.stringify(terminal.modes)}`);
  if (!mayStyle) effects.push(...stylesOf(terminal));
  const buffer = terminal.buffer.active;
  const screen = { lines: linesOf(terminal), effects, cursor: { x: buffer.cursorX, y: buffer.baseY + buffer.cursorY } };
  terminal.dispose();
  return screen;
}

function linesOf(terminal: Terminal): string[] {
  const lines: string[] = [];
  const buffer = terminal.buffer.active;
  for (let y = 0; y < buffer.length; y += 1) {
    const line = buffer.getLine(y);
    if (line === undefined) continue;
    const text = line.translateToString(false);
    // Drops the last column, which a wide character that did not fit left empty.
    const isCut = buffer.getLine(y + 1)?.isWrapped === true && line.getCell(terminal.cols - 1)?.getCode() === 0;
    const shown = isCut && line.getCell(terminal.cols - 1)?.getWidth() === 1 ? text.slice(0, -1) : text;
    if (line.isWrapped && lines.length > 0) lines[lines.length - 1] += shown;
    else lines.push(shown);
  }
  const ends = lines.map((line) => line.trimEnd());
  while (ends.at(-1) === "") ends.pop();
  return ends;
}

function stylesOf(terminal: Terminal): string[] {
  const buffer = terminal.buffer.active;
  const cell = buffer.getNullCell();
  for (let y = 0; y < buffer.length; y += 1) {
    const line = buffer.getLine(y);
    for (let x = 0; x < terminal.cols; x += 1) {
      if (line?.getCell(x, cell)?.isAttributeDefault() === false) return [`style at ${x},${y}`];
    }
  }
  return [];
}
