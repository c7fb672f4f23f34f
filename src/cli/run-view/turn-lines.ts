import { printable } from '../../core/text/hidden.js';
import { visible } from '../../core/text/summaries.js';
import type { TurnRecord } from '../../history/turn-log.js';
import { formatCount, formatUsage } from '../format/format.js';
import { formatDateTime } from '../format/format-time.js';
import type { Palette } from '../format/output.js';

/** How much of a definition's hash is shown; `--json` has all of it. */
const HASH_CHARACTERS = 12;

/** Formats the turns of a run that have ended, for reading. */
export function turnLines(turns: readonly TurnRecord[], paint: Palette): readonly string[] {
  return turns.flatMap(({ turn, agent, definition, model, settings, outcome, reports, at }) => {
    const { status, reason, usage, steps } = outcome;
    const end = status === reason ? status : `${status} (${reason})`;
    return [
      paint.bold(`turn ${turn} · ${end} · ${formatDateTime(at)}`),
      `  ${visible(agent)} ${definition.slice(0, HASH_CHARACTERS)}, model ${visible(model)}`,
      ...(Object.keys(settings).length === 0 ? [] : [`  ${printable(JSON.stringify(settings))}`]),
      `  ${formatCount(steps, 'step')} · ${formatUsage(usage)}`,
      ...reports.map(({ type, attempt, message }) =>
        visible(`  attempt ${attempt} failed: ${type}: ${message}`),
      ),
      '',
    ];
  });
}
