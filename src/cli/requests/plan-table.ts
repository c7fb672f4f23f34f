import { shownActions, planIntroduction, planTitle } from '../../core/plan/confirm-plan.js';
import type { PlannedAction } from '../../core/plan/plan.js';
import { argumentTexts } from '../../core/requests/presentation.js';
import { headOf } from '../../core/text/text.js';
import type { Request } from '../../core/transcript/request.js';
import { oneLine, pieces, quoted, wrapped } from '../format/format.js';

/** A plan as a table for people. */
interface PlanTable {
  readonly lines: readonly string[];
  /** Whether some arguments are cut; a `…` marks them. */
  readonly cut: boolean;
}

/** The lines of an action beside its number, tool, and effect: a plan of ten fits on a screen. */
const LINES = 2;
const MAX_TOOL = 24;
/** The characters of one argument if not all of them fit. */
const MAX_ARGUMENT = 24;
/** Below this width of the last column, it has lines of its own. */
const MIN_COLUMNS = 28;
const GAP = 2;
/** A reference to the result of an earlier action, in JSON; quotes in a text are escaped. */
const REFERENCE = /\{"\$ref":"([\w-]{1,20})"(?:,"path":"([^"\\]{1,80})")?\}/g;

/**
 * Returns the plan of a request as a table: number, tool, effect, and the description by the tool
 * with the arguments. `<a1.id>` stands for a value of an earlier result. `!` marks the actions that
 * need approval. Returns null if the actions are not in the request. `width`: in columns.
 */
export function planTable(request: Request, width: number): PlanTable | null {
  const actions = shownActions(request.arguments ?? '');
  if (actions === null) return null;
  const { effects = {} } = request;
  const rows = actions.map((action) => ({
    id: `${action.asks === undefined ? ' ' : '!'} ${oneLine(action.id)}`,
    tool: oneLine(action.tool),
    effect: effects[action.tool] ?? '',
    what: whatOf(action),
  }));
  const wide = (name: 'id' | 'tool' | 'effect'): number =>
    Math.max(name === 'id' ? 4 : name.length, ...rows.map((row) => row[name].length));
  const [id, tool, effect] = [wide('id'), Math.min(MAX_TOOL, wide('tool')), wide('effect')];
  const left = id + tool + effect + 3 * GAP;
  const stacked = width - left < MIN_COLUMNS;
  const indent = stacked ? id + GAP : left;
  const head = (row: { id: string; tool: string; effect: string }): string =>
    [row.id.padEnd(id), row.tool.padEnd(stacked ? 0 : tool), row.effect.padEnd(effect)].join('  ');
  let cut = false;
  const lines = rows.flatMap((row) => {
    const fitted = fitAction(row.what, width - indent);
    cut ||= fitted.cut;
    const shown = fitted.lines;
    const title = head(row);
    const beside = !stacked && title.length <= left - GAP;
    const rest = shown.map((line) => ' '.repeat(indent) + line);
    if (!beside) return [...wrapped(title.trimEnd(), width), ...rest];
    return [`${title.padEnd(left)}${shown[0] ?? ''}`.trimEnd(), ...rest.slice(1)];
  });
  const asking = actions.filter(({ asks }) => asks !== undefined);

  const introduction = planIntroduction(request.question ?? '', actions.length);
  return {
    lines: [
      ...(introduction === '' ? [] : quoted('the graph says', [introduction], width)),
      ...wrapped(`${planTitle(actions)}:`, width),
      ...(stacked
        ? []
        : [`${head({ id: '  #', tool: 'tool', effect: 'effect' }).padEnd(left)}arguments`]),
      ...lines,
      ...reasons(asking).flatMap((line) => wrapped(line, width)),
    ],
    cut,
  };
}

/** The description by the tool, if there is one, and the arguments, each as a text of one line. */
interface What {
  readonly described: string | null;
  readonly given: readonly string[];
  /** The actions that must end first although no argument refers to them. */
  readonly order: string;
}

function whatOf(action: PlannedAction): What {
  const { shown, arguments: given, parsed, after = [] } = action;
  const texts = argumentTexts({
    arguments: JSON.stringify(given),
    ...(parsed !== undefined && { parsed }),
  });
  const named = texts.map((text) =>
    oneLine(text).replaceAll(REFERENCE, (_, id: string, path?: string) =>
      path === undefined ? `<${id}>` : `<${id}.${path}>`,
    ),
  );
  const order = after.length === 0 ? '' : ` (after ${after.join(', ')})`;
  return { described: shown === undefined ? null : oneLine(shown), given: named, order };
}

/** Fits an action into its lines: long arguments are cut first, so that each of them is seen. */
function fitAction({ described, given, order }: What, columns: number): PlanTable {
  const most = described === null ? LINES : LINES - 1;
  const line = (texts: readonly string[]): string => texts.join(', ') + order;
  const whole = fit(line(given), { columns, most });
  const short = given.map((text) =>
    text.length <= MAX_ARGUMENT ? text : `${headOf(text, MAX_ARGUMENT - 1)}…`,
  );
  const rest = whole.cut ? fit(line(short), { columns, most }) : whole;
  if (described === null) return { ...rest, cut: whole.cut };
  const first = fit(described, { columns, most: 1 });
  return { lines: [...first.lines, ...rest.lines], cut: first.cut || whole.cut };
}

/** Fits a text into some lines; `…` marks a cut. */
function fit(
  text: string,
  { columns, most }: { readonly columns: number; readonly most: number },
): PlanTable {
  const all = pieces(text, columns);
  if (all.length <= most) return { lines: all, cut: false };
  const last = pieces(all[most - 1] ?? '', columns - 1)[0] ?? '';
  return { lines: [...all.slice(0, most - 1), `${last.trimEnd()}…`], cut: true };
}

/** Returns why actions need approval, with those that have the same reason in one line. */
function reasons(asking: readonly PlannedAction[]): readonly string[] {
  const groups = new Map<string, string[]>();
  for (const { id, asks } of asking) {
    const again = asks?.deciders === undefined ? '' : '; the people who may decide are asked again';
    const why = `${oneLine(asks?.why ?? '')}${again}`;
    groups.set(why, [...(groups.get(why) ?? []), id]);
  }
  return [...groups].map(([why, ids]) => `! ${ids.join(', ')}: ${why}`);
}
