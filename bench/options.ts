import { Command, InvalidArgumentError, Option } from 'commander';

export interface BenchSettings {
  readonly quick?: boolean;
  readonly only?: string;
  readonly json?: string;
  readonly profile?: string;
  /** `measure`: after measuring everything; `kept`: from the kept results. */
  readonly report?: true | 'kept';
  readonly check?: boolean;
  /** How often each group is measured; each row is that of its median run. */
  readonly runs?: number;
}

/**
 * Parses the arguments of `npm run bench`. Prints the help, or one line about what is wrong, and
 * ends the process, as commander does.
 */
export function benchSettings(args: readonly string[], groups: readonly string[]): BenchSettings {
  return benchCommand(groups)
    .parse([...args], { from: 'user' })
    .opts<BenchSettings>();
}

/** The command, so that a test can read its help without ending the process. */
export function benchCommand(groups: readonly string[]): Command {
  return new Command('npm run bench --')
    .description(
      'Measures perdure against a hand-written loop of two activities, on an embedded server of its own. Prints a table, then one line of JSON. ' +
        'A missed target is marked, and fails the bench only with --check; the exit code is also 1 if something could not be measured.',
    )
    .option('--quick', 'fewer repeats: shows that the bench works, not how fast perdure is')
    .addOption(new Option('--only <group>', 'measures one group of rows').choices(groups))
    .addOption(
      new Option(
        '--runs <count>',
        'measures each group so often, and keeps the run with the median value of each row',
      ).argParser(parseRuns),
    )
    .option('--json <file>', 'also writes the JSON to this file')
    .option('--check', 'ends with exit code 1 if a target is missed')
    .option('--profile <folder>', 'writes CPU profiles of the workers to this folder')
    .addOption(
      new Option(
        '--report [kept]',
        'keeps the results in bench/results (with --only, beside the other rows), and writes the tables of docs/benchmarks.md and its plots; "kept" writes them from the kept results and measures nothing',
      ).choices(['kept']),
    )
    .allowExcessArguments(false)
    .showSuggestionAfterError()
    .addHelpText('after', '\nSide by side with other libraries: bench/peers/README.md.');
}

function parseRuns(text: string): number {
  if (/^[1-9]\d?$/.test(text)) return Number(text);
  throw new InvalidArgumentError('expected a whole number from 1 to 99');
}

export interface PeerSettings {
  readonly quick?: boolean;
  readonly sizeLimit?: boolean;
  readonly only?: string;
  readonly json?: string;
}

/** The same for `npm start` in `bench/peers`. */
export function peerSettings(args: readonly string[], parts: readonly string[]): PeerSettings {
  return new Command('npm start --')
    .description('Compares perdure with other libraries on Temporal, in one run on one server.')
    .option('--quick', 'two repeats and few steps: shows that it works; keeps no results')
    .addOption(
      new Option('--only <part>', 'measures one part, and keeps the others').choices(parts),
    )
    .option('--size-limit', 'also finds the step at which the server ends a run (some minutes)')
    .option('--json <file>', 'also writes the JSON to this file')
    .allowExcessArguments(false)
    .parse([...args], { from: 'user' })
    .opts<PeerSettings>();
}

export interface EngineSettings {
  readonly quick?: boolean;
  readonly postgres: string;
}

/** The same for `npm run engines` in `bench/peers`. */
export function engineSettings(args: readonly string[]): EngineSettings {
  return new Command('npm run engines --')
    .description('Runs the same conversations on engines that are not Temporal, beside perdure.')
    .option('--quick', 'two repeats and few steps: shows that it works; keeps no results')
    .addOption(
      new Option('--postgres <url>', 'a PostgreSQL server, on which databases are created')
        .env('DATABASE_URL')
        .makeOptionMandatory(),
    )
    .allowExcessArguments(false)
    .parse([...args], { from: 'user' })
    .opts<EngineSettings>();
}
