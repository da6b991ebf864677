// OpenMetrics 1.0 for the textfile collector of a monitoring agent. Each row is a sample; the rows of a metric are adjacent.
import { JsonText } from "../../api/json/json-text.ts";
import { visibleText } from "../visible-text.ts";
import type { Formatter } from "./format.ts";

export interface Sample {
  /** Ends with `_seconds` if that is its unit. */
  readonly metric: string;
  readonly help: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

export const openmetrics: Formatter = {
  resource: () => "# EOF\n",
  list(_view, { sink }) {
    let metric: string | undefined;
    return {
      async page(page) {
        let text = "";
        for (const row of page) {
          const sample = JsonText.of(row.text).value as Sample;
          if (sample.metric !== metric) text += headOf(sample);
          metric = sample.metric;
          text += lineOf(sample);
        }
        await sink.write(text);
      },
      end: async () => sink.write("# EOF\n"),
    };
  },
};

function headOf({ metric, help }: Sample): string {
  const unit = metric.endsWith("_seconds") ? `# UNIT ${metric} seconds\n` : "";
  return `# TYPE ${metric} gauge\n${unit}# HELP ${metric} ${help}\n`;
}

function lineOf({ metric, labels = {}, value }: Sample): string {
  const pairs = Object.entries(labels).map(([name, text]) => `${name}="${escaped(text)}"`);
  return `${metric}${pairs.length === 0 ? "" : `{${pairs.join(",")}}`} ${value}\n`;
}

/** Labels contain the service's text, which a terminal may show. */
function escaped(label: string): string {
  return visibleText(label).replaceAll("\\", "\\\\").replaceAll('"', '\\"');
}
