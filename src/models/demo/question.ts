import { linesPlan, readPlan, writePlan } from './file-plans.js';
import { namedTool, namedToolPlan } from './named-tool.js';
import { overviewPlan } from './overview-plan.js';
import { allLinesPlan, countPlan, findPlan, largestPlan, listPlan } from './plans.js';
import type { DemoPlan } from './replay.js';
import { fileKind, fileNames, folderName, quotedTexts, searchedText } from './words.js';
import type { ModelTool } from '../model.js';

const FILE_TOOLS = ['list_files', 'read_file', 'search_text', 'write_file'];

/** The plan for a question, chosen by its words; without any that are known, a look around. */
export function planFor(question: string, tools: readonly ModelTool[]): DemoPlan {
  const named = namedTool(question, tools);
  if (named) return namedToolPlan(named, question);
  if (!tools.some(({ name }) => FILE_TOOLS.includes(name))) return nothingToDrive(tools);
  return (
    writing(question, tools) ??
    measuring(question) ??
    searching(question) ??
    reading(question) ??
    listing(question)
  );
}

function writing(question: string, tools: readonly ModelTool[]): DemoPlan | undefined {
  const verb =
    /(?:^|[.!?]\s*|\b(?:please|and|then|you|to)\s+)(?:write|create|save|put|make|store)\b/i;
  if (!verb.test(question)) return undefined;
  const path = fileNames(question).at(-1);
  if (path === undefined) return undefined;
  if (!tools.some(({ name }) => name === 'write_file')) {
    return say(
      `I cannot write ${path}: the tools that I have only read. The built-in agent writes when its worker is started with --write.`,
    );
  }
  const content = quotedTexts(question).find((text) => text !== path) ?? unquotedContent(question);
  if (content !== undefined) return writePlan(path, content);
  if (/\b(?:summar|overview|report|describ|what you (?:find|see))/i.test(question)) {
    return overviewPlan('.', path);
  }
  return say(`I can write ${path}, but not without its text: put that in quotes.`);
}

function unquotedContent(question: string): string | undefined {
  return /\b(?:saying|containing|with the (?:text|content))[:\s]+(.+)$/is
    .exec(question)?.[1]
    ?.trim();
}

function measuring(question: string): DemoPlan | undefined {
  const path = folderName(question);
  const kind = fileKind(question);
  if (/\b(?:largest|biggest)\b/i.test(question)) return largestPlan(path, kind);
  if (
    /\blines?\b/i.test(question) &&
    /\bhow (?:many|long)\b|\bcount\b|\bnumber of\b/i.test(question)
  ) {
    const [file] = fileNames(question);
    const isFile = file !== undefined && /\w\.\w+$|^[A-Z]/.test(file.split('/').at(-1) ?? '');
    return isFile ? linesPlan(file) : allLinesPlan(path, kind);
  }
  const isCount = /\bhow many\b|\bcount\b|\bnumber of\b/i.test(question);
  const isOfFiles =
    /\b(?:files?|folders?|director(?:y|ies))\b/i.test(question) && !isSearch(question);
  return isCount && (isOfFiles || kind) ? countPlan(path, kind) : undefined;
}

function isSearch(question: string): boolean {
  return /\b(?:contain(?:s|ing)?|mention(?:s|ing)?|with the (?:text|word)|use[sd]?)\b/i.test(
    question,
  );
}

function searching(question: string): DemoPlan | undefined {
  const verb =
    /\b(?:find|search|grep|look for|where|locate|occur(?:s|rences?)?|how many|how often)\b/i;
  if (!verb.test(question) && !isSearch(question)) return undefined;
  const kind = fileKind(question);
  const text = searchedText(question);
  if (
    kind &&
    !quotedTexts(question).some((quoted) => quoted !== kind.pattern) &&
    !isSearch(question)
  ) {
    return countPlan(folderName(question), kind);
  }
  return text === undefined ? undefined : findPlan(text, folderName(question), kind);
}

function reading(question: string): DemoPlan | undefined {
  const [file] = fileNames(question);
  if (file === undefined || file.endsWith('/')) return undefined;
  const isFolder = /\b(?:folder|directory)\b/i.test(question) && !/\.\w+$/.test(file);
  return isFolder ? undefined : readPlan(file);
}

function listing(question: string): DemoPlan {
  const asks =
    /\blist\b|\bls\b|\bwhich files\b|\bwhat files\b|\bshow (?:me )?(?:all |the )?files\b|\bwhat(?:'s| is| are)\b.*\b(?:here|in|inside|under)\b/i;
  const path = folderName(question);
  const kind = fileKind(question);
  if (!asks.test(question)) return overviewPlan(path, undefined);
  return kind ? countPlan(path, kind) : listPlan(path);
}

function nothingToDrive(tools: readonly ModelTool[]): DemoPlan {
  if (tools.length === 0) return say('This agent has no tools, and without tools I know nothing.');
  const names = tools.map(({ name }) => name).join(', ');
  return say(
    `I can only drive the file tools by myself, and this agent has none of them. It has: ${names}. ` +
      'Name one of these with its arguments in quotes, and I call it.',
  );
}

// oxlint-disable-next-line require-yield -- an answer that needs no calls
function* say(text: string): DemoPlan {
  return text;
}
