import { withCalled } from '../../agents/agent-definition.js';
import { type Config, budgetsOf } from '../../config.js';
import { printable } from '../../core/text/text.js';
import { redactJson, redactMessage } from '../../secrets/redact.js';
import { resolveTaskQueue } from '../../temporal/task-queue.js';
import { withOptions } from '../input/options.js';
import { type Command, type CliContext, EXIT } from '../context.js';
import { readConfiguration, callModels, modelFindings } from '../doctor/agents.js';
import type { Finding } from '../doctor/finding.js';
import {
  homeFinding,
  permissionsFinding,
  findServerInUse,
  storeFindings,
  cliFinding,
  versionsFinding,
} from '../doctor/installation.js';
import { mcpFindings } from '../doctor/mcp-servers.js';
import { serverFindings } from '../doctor/namespace.js';
import { openStores } from '../../storage/file-stores.js';
import { formatAmount, readBudgetRows } from './budgets.js';
import { nextCommandAbout, runnableText } from '../reports/next-command.js';
import { formatCount, type Palette, dataPalette } from '../format/format.js';

interface DoctorOptions {
  /** False for `--no-model`. */
  readonly model: boolean;
}

/**
 * `doctor`: shows what is in use and what is wrong, each with its fix. It starts MCP servers, asks
 * workers for their agents, and requests one token from each model. It changes nothing, except that it
 * writes a short text to a store on S3, and starts and deletes workflows if the configuration names tenants.
 */
export const doctor: Command<DoctorOptions> = {
  declare: (entry) => withOptions(entry, 'noModel'),
  async run(context, options) {
    const findings = (await examine(context, options)).map(redacted);
    const report = conclude(findings);
    if (context.options.json) context.out(JSON.stringify({ ...report, findings }));
    else {
      for (const line of findings.flatMap((finding) => lines(finding, dataPalette(context)))) {
        context.out(line);
      }
    }
    context.note(report.conclusion);
    return report.ok ? EXIT.completed : EXIT.failed;
  },
};

/** What `doctor` concludes: the same for its text, its JSON, and its exit code. */
interface Report {
  /** Whether no problem was found; what was not checked may still be one. */
  readonly ok: boolean;
  readonly problems: readonly string[];
  readonly notes: readonly string[];
  readonly unchecked: readonly string[];
  /** The last line of the text. */
  readonly conclusion: string;
}

/**
 * Returns the report. It claims that everything is present only if everything was checked and there
 * are no notes.
 */
function conclude(findings: readonly Finding[]): Report {
  const named = (wanted: Finding['level']): readonly string[] =>
    findings.filter(({ level }) => level === wanted).map(({ name }) => name);
  const [problems, notes, unchecked] = [named('problem'), named('note'), named('skipped')];
  const found = [
    ...(problems.length > 0 ? [formatCount(problems.length, 'problem')] : ['No problem found']),
    ...(notes.length > 0 ? [formatCount(notes.length, 'note')] : []),
  ];
  const rest = unchecked.length === 0 ? '' : ` Not checked: ${unchecked.join(', ')}.`;
  const isAll = problems.length + notes.length + unchecked.length === 0;
  return {
    ok: problems.length === 0,
    problems,
    notes,
    unchecked,
    conclusion: isAll ? 'Everything that a run needs is present.' : `${found.join('; ')}.${rest}`,
  };
}

/** Redacts the answers of providers, servers, and MCP servers, which may contain anything. */
function redacted(finding: Finding): Finding {
  const { name, text, fix, data } = finding;
  return {
    ...finding,
    name: redactMessage(name),
    text: redactMessage(text),
    ...(fix !== undefined && { fix: redactMessage(fix) }),
    data: redactJson(data),
  };
}

async function examine(
  context: CliContext,
  { model: callsModels }: DoctorOptions,
): Promise<readonly Finding[]> {
  const { env, home, options } = context;
  const { finding: configuration, config, isBuiltIn } = await readConfiguration(context);
  const { finding: found, server, embedded } = await findServerInUse(context, config);
  const taskQueue = options.taskQueue ?? resolveTaskQueue(config, env);
  const agents = config.agents.map(({ name }) => name);
  const known = withCalled(config.agents).map(({ name }) => name);
  const retained = withCalled(config.agents).flatMap(({ name, retentionMs }) =>
    retentionMs === undefined ? [] : [{ name, retentionMs }],
  );
  const models = await modelFindings(config, env);
  const workerCommand = (queue: string, isOwn: boolean): string => {
    if (isOwn) return nextCommandAbout(context, ['worker']);
    const { config: _, ...place } = options;
    return nextCommandAbout({ env, options: { ...place, taskQueue: queue } }, ['worker']);
  };
  const place = {
    env,
    taskQueue,
    agents,
    known,
    isBuiltIn,
    retained,
    workerCommand,
    hasTenants: hasTenants(config),
  };
  const findings: readonly Finding[] = [
    versionsFinding(),
    configuration,
    await homeFinding(home),
    await permissionsFinding(home),
    ...(await storeFindings(home, env)),
    found,
    ...(embedded ? [await cliFinding(home, env)] : []),
    ...(server === null ? noServer() : await serverFindings({ ...place, server })),
    ...(server === null ? [] : await budgetFindings(context, config)),
    ...models,
    ...(await callModels(config, env, { call: callsModels })),
    ...(await mcpFindings(config, env, () => openStores(home, env).toolLock)),
  ];
  return findings.map((finding) => {
    const text = runnableText(context, finding.text);
    return { ...finding, text, ...(finding.fix && { fix: runnableText(context, finding.fix) }) };
  });
}

/** Whether the configuration names tenants, so the server has to take turns between them. */
function hasTenants({ budgets = [], serve = {} }: Pick<Config, 'budgets' | 'serve'>): boolean {
  const { principals = {}, groups = {} } = serve;
  const all = [...budgets, ...Object.values(principals), ...Object.values(groups)];
  return all.some(({ tenant }) => tenant !== undefined);
}

/** Returns what is left of the budgets; nothing if the configuration has none. */
async function budgetFindings(
  context: CliContext,
  config: Pick<Config, 'budgets'>,
): Promise<readonly Finding[]> {
  if (budgetsOf(config).length === 0) return [];
  const rows = await readBudgetRows(context, config);
  const isRead = rows.every(({ unread }) => unread === undefined);
  const isUsedUp = rows.some((row) => row.isUsedUp);
  const text = rows.map((row) => {
    const [spent, held, limit] = [row.spent, row.held, row.limit].map((each) =>
      formatAmount(each, row),
    );
    const state = row.isUsedUp ? '; used up, so its runs wait for the next day' : '';
    return row.unread === undefined
      ? `${row.of} ${row.name}: ${spent} of ${limit} spent, ${held} held by workers${state}`
      : `${row.of} ${row.name}: ${row.unread}`;
  });
  const fix = 'raise it in `budgets` of the configuration, and restart the workers';
  return [
    {
      name: 'budgets',
      level: isUsedUp ? 'note' : isRead ? 'ok' : 'skipped',
      text: text.join('\n'),
      ...(isUsedUp && { fix }),
      data: { budgets: rows.map((row) => ({ ...row })) },
    },
  ];
}

function noServer(): readonly Finding[] {
  const text = 'not checked: no server is running';
  return ['namespace', 'worker agents'].map((name) => ({ name, level: 'skipped', text, data: {} }));
}

const NAME_WIDTH = 18;
const LEVEL_WIDTH = 8;

function lines({ name, level, text, fix }: Finding, paint: Palette): readonly string[] {
  const color = { ok: paint.green, note: paint.yellow, skipped: paint.yellow, problem: paint.red }[
    level
  ];
  const [first = '', ...rest] = printable(text).split('\n');
  const indent = ' '.repeat(LEVEL_WIDTH + NAME_WIDTH);
  return [
    `${color(level.padEnd(LEVEL_WIDTH))}${printable(name).padEnd(NAME_WIDTH - 1)} ${first}`,
    ...rest.map((line) => `${indent}${line}`),
    ...(fix?.split('\n') ?? []).map((each) => `${indent}→ ${printable(each)}`),
  ];
}
