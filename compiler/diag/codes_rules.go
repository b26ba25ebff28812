package diag

// ruleCodes are the rules between the parts of a configuration, SH02xx.
var ruleCodes = []Entry{}

// analysisCodes are the warnings of the static analysis, SH03xx.
var analysisCodes = []Entry{}

// availabilityCodes are settings that are valid but not available yet,
// SH0401 to SH0489.
var availabilityCodes = []Entry{}

// planCodes are what the plan loader and the plan's signature say, SH05xx.
var planCodes = []Entry{}
