import { visible } from '../../core/state/summaries.js';
import { InputError } from '../../core/errors.js';
import { isObject } from '../../core/text/json.js';
import { meantModel } from '../../models/known-models.js';
import { createModelCatalog, standInFor } from '../../models/model-catalog.js';
import { type Model, ModelError } from '../../models/model.js';
import { assertCallable } from '../../models/uncallable.js';
import {
  type EvalProgress,
  type EvaluatedCase,
  type Evaluation,
  type EvaluateOptions,
  evaluate,
} from '../../recordings/evaluate.js';
import { type CliContext, type Command, EXIT, type ExitCode, UsageError } from '../context.js';
import { catchInterrupt } from '../hosting/hosting.js';
import { loadModule } from '../input/load-config.js';
import { withOptions } from '../input/options.js';
import { writeOutput } from '../input/output-file.js';
import { show } from '../../core/text/text.js';
import { runnableText } from '../reports/next-command.js';
import {
  evalLines,
  junitReport,
  progressLine,
  toJson,
  unfinishedReport,
} from '../reports/eval-report.js';

/** Which of the commands for tests is which. */
export const WHICH =
  '\nrecord writes a run that has happened to a file. rerun executes recordings with your current agents and the recorded\n' +
  'model, and shows the first difference: a test of your code. eval runs a folder of recordings with another model, and\n' +
  "scores it: a test of the model. replay is Temporal's determinism check of histories, as export writes them, and\n" +
  'executes none of your code. Tools are never executed: their results are the recorded ones.';

interface EvalCommandOptions {
  readonly folder: string;
  readonly model?: string;
  readonly runs?: number;
  readonly atOnce?: number;
  readonly scorers?: string;
  readonly junit?: string;
}

/** `eval FOLDER --model NAME`: runs recordings with another model, and compares. */
export const evaluation: Command<EvalCommandOptions> = {
  declare: (entry) =>
    withOptions(
      entry.argument('<folder>', 'recordings, as record writes them'),
      'model',
      'runs',
      'atOnce',
      'scorers',
      'junit',
    ).addHelpText('after', WHICH),
  run: evaluateFolder,
};

/** The options of `evaluate` whose names are others in the command. */
const OPTIONS: Readonly<Record<string, string>> = {
  cases: 'folder',
  runs: '--runs',
  atOnce: '--at-once',
};
const FIELD = /^([a-zA-Z]+)(: [^]*)$/;

async function evaluateFolder(
  context: CliContext,
  { folder, model: name, runs, atOnce, scorers: file, junit }: EvalCommandOptions,
): Promise<ExitCode> {
  if (name === undefined) {
    throw new UsageError('--model: expected the name of a model, got none; name the one to try');
  }
  // Model calls cost money, so a report that cannot be written must not come after them. If this ends
  // early, a program that reads the report does not find that of another evaluation.
  if (junit !== undefined)
    await writeOutput({ option: '--junit', file: junit }, unfinishedReport(name));
  const signal = catchInterrupt();
  const { agents, encryption } = await context.config();
  const model = await candidateModel(context, name);
  const module = file === undefined ? {} : await scorersIn(context, file);
  const evaluated = await evaluate(folder, {
    agents,
    model,
    ...module,
    ...(encryption && { encryption }),
    ...(runs !== undefined && { runs }),
    ...(atOnce !== undefined && { atOnce }),
    signal,
    onProgress: (progress: EvalProgress) =>
      context.note(inCommand(context, progressLine(progress))),
  }).catch((error: unknown) => {
    if (!InputError.isInstance(error)) throw error;
    const [, field = '', rest = error.message] = FIELD.exec(error.message) ?? [];
    throw new UsageError(`${OPTIONS[field] ?? field}${rest}`, { cause: error });
  });
  const result = { ...evaluated, cases: evaluated.cases.map((one) => caseInCommand(context, one)) };
  report(context, result, name);
  if (junit !== undefined)
    await writeOutput({ option: '--junit', file: junit }, junitReport(result, name));
  if (!result.finished) return EXIT.interrupted;
  return result.passed ? EXIT.completed : EXIT.failed;
}

/** Returns a text with what a command line can do about an agent that is missing, and with commands that can be pasted. */
function inCommand(context: CliContext, text: string): string {
  const own = text
    .replace('expected one of the given agents', 'expected an agent of the configuration')
    .replace('(given: ', '(it has: ')
    .replace('give the agent of the recording', 'give the config of that agent with --config');
  return runnableText(context, own);
}

function caseInCommand(context: CliContext, one: EvaluatedCase): EvaluatedCase {
  const candidates = one.candidates.map(({ error, ...rest }) => ({
    ...rest,
    error: error && inCommand(context, error),
  }));
  return { ...one, candidates };
}

/**
 * Returns the model of a configuration, or of a provider, that is called in place of the recorded one. Rejects
 * with a `UsageError` for a name that is a mistake, and for a model without a key.
 */
export async function candidateModel(context: CliContext, name: string): Promise<Model> {
  const { models = {} } = await context.config();
  const meant = meantModel(name, Object.keys(models));
  if (meant !== undefined) {
    throw new UsageError(
      `--model: expected a model, got ${show(name)} (did you mean ${show(meant)}); correct it, or add an entry ${show(name)}: {} to \`models\``,
    );
  }
  const catalog = createModelCatalog(models, context.env);
  const model = standInFor(catalog.resolve(name));
  const lack = catalog.knows(name) ? '' : ' (no entry in `models` of the configuration)';
  const candidate: Model = {
    ...model,
    async call(request, how) {
      try {
        return await model.call(request, how);
      } catch (error) {
        if (!(error instanceof ModelError) || error.details.kind !== 'credentials') throw error;
        const text = `--model ${show(name)}${lack}: ${error.message}`;
        throw new ModelError(text, { ...error.details, cause: error });
      }
    },
  };
  await assertCallable(candidate).catch((error: unknown) => {
    if (!(error instanceof ModelError)) throw error;
    throw new UsageError(error.message, { cause: error });
  });
  return candidate;
}

async function scorersIn(
  context: CliContext,
  file: string,
): Promise<Pick<EvaluateOptions, 'scorers' | 'gates'>> {
  const module = await loadModule(file, { folder: process.cwd(), env: context.env });
  const { scorers, gates } = module;
  if (scorers === undefined && gates === undefined) {
    throw new UsageError(
      `${visible(file)}: expected an export \`scorers\` or \`gates\`, got neither; export const scorers = { … }`,
    );
  }
  for (const [field, value] of Object.entries({ scorers, gates })) {
    if (value === undefined || isObject(value)) continue;
    throw new UsageError(`${visible(file)}: ${field}: expected an object, got ${typeof value}`);
  }
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- `evaluate` checks each of them
  return {
    ...(scorers !== undefined && { scorers }),
    ...(gates !== undefined && { gates }),
  } as Pick<EvaluateOptions, 'scorers' | 'gates'>;
}

function report(context: CliContext, result: Evaluation, model: string): void {
  if (context.options.json) context.out(JSON.stringify(toJson(result, model)));
  else for (const line of evalLines(result, model)) context.out(line);
}
