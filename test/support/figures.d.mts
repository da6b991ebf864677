export const figuresFile: string;
export function recordFigure(name: string, values: Readonly<Record<string, number | string>>, of?: string): void;
export function collectFigures(): () => void;
