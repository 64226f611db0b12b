// The parser of YAML, imported where a file is there to parse: it takes longer to load than most commands run.
export { parse } from 'yaml'
