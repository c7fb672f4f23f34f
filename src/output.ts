// Answers in tags
export {
  tags,
  type TagAnswer,
  type TagOption,
  type TagOptions,
  type Tags,
  type XmlElement,
} from './output/tags.js';

// Classes with probabilities
export { binaryClassify, classify, type Classes } from './output/classes/classify.js';
export type { Classification } from './output/classes/distribution.js';
