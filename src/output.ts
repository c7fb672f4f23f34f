// Answers in tags
export {
  tags,
  type TagAnswer,
  type TagOption,
  type TagOptions,
  type Tags,
  type XmlElement,
} from './output/parse-tags.js';

// Classes with probabilities
export { binaryClassify, classify, type Classes } from './output/classes/classes.js';
export type { Classification } from './output/classes/classes.js';

// Parsers of your own
export { ParseError, type AnswerParser, type ParseFunction } from './output/parse-output.js';
export type { OutputDefinition, Tag, TagSet } from './core/definition/definition.js';
