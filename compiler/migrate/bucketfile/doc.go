// Package bucketfile reads the bucket files and configuration files of older
// routers, and the decisions that people take where those files leave something
// open.
//
// Four formats are known: the legacy bucket file, whose specs are one stage each;
// two later bucket files with complete buckets, in one of which the groups say
// their mode and in the other they do not; and the configuration file of the
// first versions with its file of engines. All mistakes of a file are reported at
// once, with their places, although the routers stopped at the first.
//
// Associate makes complete buckets of the specs of a legacy file. Which prefill
// and which decode spec belong together is never inferred, neither from a rank
// nor from a name: it is stated on the command line or in a decisions file, and
// whatever nobody stated is an open question that comes with the text that
// answers it.
package bucketfile
