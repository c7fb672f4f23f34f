import { randomUUID } from 'node:crypto';
import { tools } from '../../examples/assistant/tools.js';
import type { WorkflowHandle } from '@temporalio/client';
import { toAgentDefinition } from '../../src/agents/agent-definition.js';
import { defineAgent } from '../../src/agents/define-agent.js';
import type { RunInput } from '../../src/core/input/input.js';
import { shownTools } from '../../src/core/transcript/catalog.js';
import { estimateTokens } from '../../src/core/text/text.js';
import type { Bench } from '../kit/bench.js';
import { startAgent } from '../kit/pair.js';
import { interleave, medians, ratios } from '../kit/interleave.js';
import type { Row } from '../row.js';
import { median } from '../statistics.js';
import { show } from '../table.js';

interface Compared {
  readonly name: string;
  readonly what: string;
  /** The hand-written workflow, and the input of perdure's. */
  readonly bare: string;
  readonly input: RunInput;
  readonly repeats: number;
  readonly warmUp: number;
}

/** Compares graphs with the same activities in a hand-written workflow. */
export async function measureGraphs(bench: Bench): Promise<readonly Row[]> {
  const perdure = await bench.worker('perdure');
  const bare = await bench.worker('bare');
  const timed = async (start: () => Promise<WorkflowHandle>): Promise<number> => {
    const begun = performance.now();
    await (await start()).result();
    return performance.now() - begun;
  };
  const compare = async (given: Compared): Promise<Row> => {
    const both = {
      perdure: () => timed(async () => await startAgent(bench, perdure.queue, given.input)),
      bare: () =>
        timed(async () => {
          const options = { taskQueue: bare.queue, workflowId: randomUUID() };
          return await bench.client.workflow.start(given.bare, options);
        }),
    };
    await interleave(given.warmUp, both);
    const compared = await interleave(given.repeats, both);
    const found = medians(compared);
    return {
      name: given.name,
      what: given.what,
      value: median(ratios(compared)),
      unit: 'x',
      bar: { atMost: 1.15 },
      samples: ratios(compared),
      detail: `${show(found.perdure)} against ${show(found.bare)} ms`,
    };
  };
  const rows = [
    await compare({
      name: 'graphs/three',
      what: 'three run nodes against three activities',
      bare: 'threeActivities',
      input: { agent: 'three', input: {} },
      repeats: bench.quick ? 10 : 40,
      warmUp: bench.quick ? 3 : 20,
    }),
    await compare({
      name: 'graphs/wide-plan',
      what: 'a plan of 200 actions, 50 wide, against the same by hand',
      bare: 'widePlan',
      input: { agent: 'wide', message: 'go' },
      repeats: bench.quick ? 3 : 20,
      warmUp: bench.quick ? 1 : 5,
    }),
    toolTokens(),
  ];
  await Promise.all([perdure.end(), bare.end()]);
  return rows;
}

/** The size of a planner's tools in each of its prompts. */
function toolTokens(): Row {
  const base = { name: 'x', instructions: 'x', tools };
  const tokensOf = (exposure: 'all' | 'catalog'): number => {
    const agent = defineAgent({ ...base, toolExposure: exposure });
    const definition = toAgentDefinition(agent, { model: 'x', tools: agent.tools.tools });
    return estimateTokens(JSON.stringify(shownTools(definition)));
  };
  const [all, catalog] = [tokensOf('all'), tokensOf('catalog')];
  return {
    name: 'graphs/tool-tokens',
    what: `tool tokens of a catalog against all ${tools.length} schemas`,
    value: catalog / all,
    unit: 'x',
    bar: { atMost: 0.2 },
    samples: [catalog / all],
    detail: `${catalog} against ${all} tokens`,
  };
}
