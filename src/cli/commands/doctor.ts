import { printable } from '../../core/text/hidden.js';
import { redactJson } from '../../secrets/redact-json.js';
import { redactMessage } from '../../secrets/redact.js';
import { resolveTaskQueue } from '../../temporal/task-queue.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { readConfiguration } from '../doctor/configuration.js';
import type { Finding } from '../doctor/finding.js';
import { homeFinding, permissionsFinding } from '../doctor/home.js';
import { callModels } from '../doctor/call-models.js';
import { mcpFindings } from '../doctor/mcp.js';
import { modelFindings } from '../doctor/models.js';
import { serverFindings } from '../doctor/namespace.js';
import { findServerInUse } from '../doctor/server.js';
import { storeFindings } from '../doctor/store.js';
import { cliFinding } from '../doctor/temporal-cli.js';
import { openStores } from '../../storage/file-stores.js';
import { versionsFinding } from '../doctor/versions.js';
import { EXIT } from '../exit-codes.js';
import { formatCount } from '../format/format.js';
import type { Palette } from '../format/output.js';
import { dataPalette } from '../format/table.js';

export interface DoctorOptions {
  /** False for `--no-model`. */
  readonly model: boolean;
}

/**
 * `doctor`: shows what is in use and what is wrong, each with its fix. It starts MCP servers, asks
 * workers for their agents, and requests one token from each model. It changes nothing, except that it
 * writes a short text to a store on S3.
 */
export const doctor: Command<DoctorOptions> = {
  declare: (entry) => entry.option('--no-model', 'do not call models; report them as not checked'),
  async run(context, options) {
    const findings = (await examine(context, options)).map(redacted);
    const problems = findings.filter(({ level }) => level === 'problem').length;
    const unchecked = findings.filter(({ level }) => level === 'skipped').map(({ name }) => name);
    if (context.options.json) {
      const ok = problems === 0 && unchecked.length === 0;
      context.out(JSON.stringify({ ok, unchecked, findings }));
    } else {
      for (const line of findings.flatMap((finding) => lines(finding, dataPalette(context)))) {
        context.out(line);
      }
    }
    context.note(conclusion(findings, { problems, unchecked }));
    return problems === 0 ? EXIT.completed : EXIT.failed;
  },
};

/**
 * Returns the conclusion. It claims that everything is present only if everything was checked and
 * there are no notes.
 */
function conclusion(
  findings: readonly Finding[],
  { problems, unchecked }: { readonly problems: number; readonly unchecked: readonly string[] },
): string {
  const rest = unchecked.length === 0 ? '' : ` Not checked: ${unchecked.join(', ')}.`;
  if (problems > 0) return `${formatCount(problems, 'problem')}.${rest}`;
  if (rest !== '') return `No problem found.${rest}`;
  const notes = findings.filter(({ level }) => level === 'note').length;
  if (notes > 0) return `No problem found; ${formatCount(notes, 'note')}.`;
  return 'Everything that a run needs is present.';
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
  const { finding: configuration, config } = await readConfiguration(context);
  const { finding: found, server, embedded } = await findServerInUse(context, config);
  const taskQueue = options.taskQueue ?? resolveTaskQueue(config, env);
  const agents = config.agents.map(({ name }) => name);
  const models = await modelFindings(config, env);
  return [
    versionsFinding(),
    configuration,
    await homeFinding(home),
    await permissionsFinding(home),
    ...(await storeFindings(home, env)),
    found,
    ...(embedded ? [await cliFinding(home, env)] : []),
    ...(server === null ? noServer() : await serverFindings({ server, env, taskQueue, agents })),
    ...models,
    ...(await callModels(config, env, { call: callsModels })),
    ...(await mcpFindings(config, env, () => openStores(home, env).toolLock)),
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
    `${color(level.padEnd(LEVEL_WIDTH))}${printable(name).padEnd(NAME_WIDTH)}${first}`,
    ...rest.map((line) => `${indent}${line}`),
    ...(fix?.split('\n') ?? []).map((each) => `${indent}→ ${printable(each)}`),
  ];
}
