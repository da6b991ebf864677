export function recordFigure(name: string, values: Readonly<Record<string, number | string>>, of?: string): void;
