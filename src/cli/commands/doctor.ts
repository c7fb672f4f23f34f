import { printable } from '../../core/text/hidden.js';
import { redactJson } from '../../secrets/redact-json.js';
import { redactMessage } from '../../secrets/redact.js';
import { resolveTaskQueue } from '../../temporal/task-queue.js';
import type { Command } from '../command.js';
import type { CliContext } from '../context.js';
import { readConfiguration } from '../doctor/configuration.js';
import type { Finding } from '../doctor/finding.js';
import { homeFinding, permissionsFinding } from '../doctor/home.js';
import { mcpFindings } from '../doctor/mcp.js';
import { modelFindings } from '../doctor/models.js';
import { serverFindings } from '../doctor/namespace.js';
import { findServerInUse } from '../doctor/server.js';
import { cliFinding } from '../doctor/temporal-cli.js';
import { versionsFinding } from '../doctor/versions.js';
import { EXIT } from '../exit-codes.js';
import { formatCount } from '../format/format.js';
import type { Palette } from '../format/output.js';
import { dataPalette } from '../format/table.js';

/**
 * `doctor`: shows what is in use and what is wrong, each with its fix. Starts nothing but MCP
 * servers, and changes nothing.
 */
export const doctor: Command<object> = {
  async run(context) {
    const findings = (await examine(context)).map(redacted);
    const problems = findings.filter(({ level }) => level === 'problem').length;
    if (context.options.json) {
      context.out(JSON.stringify({ ok: problems === 0, findings }));
    } else {
      for (const line of findings.flatMap((finding) => lines(finding, dataPalette(context)))) {
        context.out(line);
      }
    }
    context.note(
      problems === 0
        ? 'Everything that a run needs is present.'
        : `${formatCount(problems, 'problem')}.`,
    );
    return problems === 0 ? EXIT.completed : EXIT.failed;
  },
};

/** Redacts what providers, servers, and MCP servers answered: it may hold anything. */
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

async function examine(context: CliContext): Promise<readonly Finding[]> {
  const { env, home, options } = context;
  const { finding: configuration, config } = await readConfiguration(context);
  const { finding: found, server, embedded } = await findServerInUse(context, config);
  const taskQueue = options.taskQueue ?? resolveTaskQueue(config, env);
  return [
    versionsFinding(),
    configuration,
    await homeFinding(home),
    await permissionsFinding(home),
    found,
    ...(embedded ? [await cliFinding(home, env)] : []),
    ...(server === null ? [] : await serverFindings({ server, env, taskQueue })),
    ...(await modelFindings(config, env)),
    ...(await mcpFindings(config, env)),
  ];
}

const NAME_WIDTH = 18;
const LEVEL_WIDTH = 8;

function lines({ name, level, text, fix }: Finding, paint: Palette): readonly string[] {
  const color = { ok: paint.green, note: paint.yellow, problem: paint.red }[level];
  const [first = '', ...rest] = printable(text).split('\n');
  const indent = ' '.repeat(LEVEL_WIDTH + NAME_WIDTH);
  return [
    `${color(level.padEnd(LEVEL_WIDTH))}${printable(name).padEnd(NAME_WIDTH)}${first}`,
    ...rest.map((line) => `${indent}${line}`),
    ...(fix?.split('\n') ?? []).map((each) => `${indent}→ ${printable(each)}`),
  ];
}
