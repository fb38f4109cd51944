# SPDX-License-Identifier: Apache-2.0
# docs.pl - what the rule docs asks of each page: docs.pl RULE COMMANDS PAGE...
use strict;
use warnings;
my ($rule, $commands, @pages) = @ARGV;
my %command = map { $_ => 1 } split " ", $commands;

# The name of a heading in a link, as the common renderers make it.
sub anchor {
    my $text = lc shift;
    $text =~ s/\]\([^)]*\)//g;
    $text =~ s/[^\w\- ]//g;
    return $text =~ s/ /-/gr;
}

my %anchors;
sub anchors_of {
    my $path = shift;
    return $anchors{$path} if $anchors{$path};
    my (%found, $fenced);
    open my $in, "<:utf8", $path or return {};
    while (<$in>) {
        $fenced = !$fenced if /^\s*```/;
        $found{anchor($1)} = 1 if !$fenced && /^#+ +(.*?)\s*$/;
    }
    return $anchors{$path} = \%found;
}

for my $page (@pages) {
    my ($folder) = $page =~ m{^(.*/)} ? $1 : "";
    my $fence = "";
    open my $in, "<:utf8", $page or die "$page: $!\n";
    while (my $line = <$in>) {
        my $place = "$page:$.: $rule:";
        if ($line =~ /^\s*```(\w*)/) { $fence = $fence ? "" : $1 || "text"; next }
        my @code = $fence eq "sh" ? ($line) : $fence ? () : $line =~ /`([^`]+)`/g;
        for my $code (@code) {
            while ($code =~ /(?:^|[\s;|(])weir ([a-z][a-z-]*)/g) {
                print "$place weir $1 is no command of ops/weir/commands.def\n" unless $command{$1};
            }
        }
        next if $fence;
        for my $path (grep { m{^(?:store|ingest|partitioner|trainer|inference|http|ops|tests)/[\w./-]*$} } @code) {
            print "$place $path is not there\n" unless -e $path || -e "$folder$path";
        }
        while ($line =~ /\]\(([^)\s]+)\)/g) {
            my ($target, $name) = split /#/, $1, 2;
            next if $target =~ /^[a-z]+:/;
            my $path = $target eq "" ? $page : "$folder$target";
            1 while $path =~ s{[^/]+/\.\./}{};
            if (!-e $path) { print "$place the link leads to $path, which is not there\n" }
            elsif (defined $name && -f $path && !anchors_of($path)->{$name}) {
                print "$place $path has no heading #$name\n";
            }
        }
    }
}
