"""L003, L007, L010, L016: how losses are called, numbers that stand for none, and augmentation."""

MESSAGES: dict[str, str] = {
    # L003: how a loss is called
    "`{loss}` is given the target first and the output second": ("`{loss}`先收到目標，後收到輸出"),
    "It is not the same both ways: it takes the output first.": (
        "兩者的次序不能互換：它應先收到輸出。"
    ),
    "loss = loss_function(output, target)": "loss = loss_function(output, target)",
    "`poisson_nll_loss` takes the logarithm of the rate, and is given what a {activation} has "
    "made positive": "`poisson_nll_loss` 應收到速率的對數，卻收到經過 {activation} 而成為正數的值",
    "The loss takes the exponential itself, so that the rate is never below 1.": (
        "損失本身就會取指數，因此速率永遠不會低於 1。"
    ),
    "Leave the {activation} out, or say `log_input=False`.": (
        "請拿掉 {activation}，或指定 `log_input=False`。"
    ),
    "`poisson_nll_loss` is told that it is given rates, and they go down to {low:.4g}": (
        "已告訴 `poisson_nll_loss` 收到的是速率，但它們低至 {low:.4g}"
    ),
    "A rate is positive, and a negative one has no logarithm.": ("速率是正數，負的速率沒有對數。"),
    "End the model with an exponential or softplus, or say `log_input=True`.": (
        "請以指數或 softplus 作為模型的結尾，或指定 `log_input=True`。"
    ),
    "`kl_div` takes probabilities as its target, and is given numbers from {low:.4g}": (
        "`kl_div` 的目標應為機率，卻收到最小為 {low:.4g} 的數"
    ),
    "Logarithms of probabilities must be announced, or the loss is not a divergence.": (
        "機率的對數必須先說明，否則這個損失就不是散度。"
    ),
    'loss = F.kl_div(output, target, log_target=True, reduction="batchmean")': (
        'loss = F.kl_div(output, target, log_target=True, reduction="batchmean")'
    ),
    "`kl_div` is told that its target is logarithms, and it is never below 0": (
        "已告訴 `kl_div` 目標是對數，但它從不低於 0"
    ),
    "The loss takes the exponential of what are probabilities already.": (
        "損失對本來就是機率的值又取了指數。"
    ),
    'loss = F.kl_div(output, target, reduction="batchmean")': (
        'loss = F.kl_div(output, target, reduction="batchmean")'
    ),
    "`cross_entropy` takes one class, or probabilities that sum to 1, and is given rows of several "
    "classes that sum to up to {most:.4g}": (
        "`cross_entropy` 應收到一個類別或總和為 1 的機率，"
        "卻收到含有數個類別、總和高達 {most:.4g} 的列"
    ),
    "Its softmax lets classes compete, so that no two of them can both be sure.": (
        "它的 softmax 讓各類別互相競爭，因此沒有兩個類別能同時確定。"
    ),
    "Of labels that can hold together use `binary_cross_entropy_with_logits`; divide votes by "
    "their sum.": (
        "若標籤可以同時成立，請用 `binary_cross_entropy_with_logits`；若為票數，請除以其總和。"
    ),
    "{blanks} of the {symbols} symbols that `ctc_loss` is to find are its blank": (
        "`ctc_loss` 要找的 {symbols} 個符號中，有 {blanks} 個是它的空白"
    ),
    "The blank stands for no symbol, so that this one is never written.": (
        "空白不代表任何符號，因此這個符號永遠不會被寫出。"
    ),
    "Give the blank a number of its own: `nn.CTCLoss(blank=len(symbols))`.": (
        "請給空白一個專用的編號：`nn.CTCLoss(blank=len(symbols))`。"
    ),
    "{long} of the {texts} texts that `ctc_loss` is to find are longer than the frames it is given "
    "for them": "`ctc_loss` 要找的 {texts} 段文字中，有 {long} 段比給它的影格更長",
    "No alignment exists then: the loss is infinite, or 0 with `zero_infinity`.": (
        "此時不存在任何對齊：損失為無限大，若設 `zero_infinity` 則為 0。"
    ),
    "Shorten the signal less, or leave those texts out.": ("請少縮短一些訊號，或略去那些文字。"),
    "the loss is nothing but a cosine similarity to the target, and grows with it": (
        "損失就只是與目標的餘弦相似度，並隨之增大"
    ),
    "To make it small is to point away from the target.": "使它變小就是背離目標。",
    "loss = 1 - F.cosine_similarity(output, target).mean()": (
        "loss = 1 - F.cosine_similarity(output, target).mean()"
    ),
    "the target of `{loss}` is a number plus a discounted output of the model, and the gradient "
    "goes through it": "`{loss}` 的目標是一個數加上打了折扣的模型輸出，而梯度會流經它",
    "The estimate of what follows is moved towards what is, instead of the other way.": (
        "被移動的是對後續的估計，使它靠近當下，而不是反過來。"
    ),
    "target = reward + discount * value_of_next.detach()": (
        "target = reward + discount * value_of_next.detach()"
    ),
    "a label smoothing of {smoothing:.3g} takes more of each target from its class than it leaves "
    "there": "標籤平滑 {smoothing:.3g} 從每個目標的類別拿走的比留下的還多",
    "It is the part that is spread over all classes, and not the one that is kept.": (
        "它是分散到所有類別的部分，而不是保留的部分。"
    ),
    "nn.CrossEntropyLoss(label_smoothing={kept:.3g})": (
        "nn.CrossEntropyLoss(label_smoothing={kept:.3g})"
    ),
    "the classes that are most frequent have the largest weights: one is {ratio:.0f} times as "
    "frequent as another, and weights grow with the power {slope:.2g} of that": (
        "最常見的類別權重最大：某一類別出現的次數是另一類別的 {ratio:.0f} 倍，"
        "而權重隨其 {slope:.2g} 次方增長"
    ),
    "Weights are to make up for rare classes, and these hide them all the more.": (
        "權重應補償罕見的類別，這些權重卻更加掩蓋了它們。"
    ),
    "weight = counts.sum() / counts  # pos_weight = negatives / positives": (
        "weight = counts.sum() / counts  # pos_weight = 負例數 / 正例數"
    ),
    "the targets of `{loss}` are the whole numbers from {low:.4g} to {high:.4g}, and {zeros:.0%} "
    "of them are 0": ("`{loss}` 的目標是 {low:.4g} 到 {high:.4g} 的整數，其中 {zeros:.0%} 為 0"),
    "What lay between was cut off by a cast to whole numbers, as of scaled targets.": (
        "介於其間的部分因轉換為整數而被截去，例如已縮放的目標。"
    ),
    "target = torch.as_tensor(values, dtype=torch.float32)  # not long() or int()": (
        "target = torch.as_tensor(values, dtype=torch.float32)  # 不要用 long() 或 int()"
    ),
    # L007 and L016: numbers that stand for none, targets in units of their own
    "{value:.4g} stands in them again and again, in {columns} of {features} features and {marks} "
    "elements, at more than 5 times the range of all others from these": (
        "其中反覆出現 {value:.4g}，遍及 {features} 個特徵中的 {columns} 個、共 {marks} 個元素，"
        "與其他數值的距離超過它們全距的 5 倍"
    ),
    "{marks} targets of {model} are {value:.4g}, at more than 5 times the range of all others from "
    "these": "{model} 的目標中有 {marks} 個是 {value:.4g}，與其他數值的距離超過它們全距的 5 倍",
    "A number that stands for a missing target is learned as if it were one.": (
        "代表缺漏目標的數被當成目標來學習。"
    ),
    "known = y != MISSING; x, y = x[known], y[known]": (
        "known = y != MISSING; x, y = x[known], y[known]"
    ),
    "one of the targets of {model} varies {ratio:.0f} times as much as another, which hardly "
    "counts in the loss": (
        "{model} 的某個目標變動幅度是另一個的 {ratio:.0f} 倍，後者在損失中幾乎不算數"
    ),
    "The targets are in units of their own, and their errors are added as they are.": (
        "各目標有各自的單位，而它們的誤差被直接相加。"
    ),
    "y = (y - y.mean(0)) / y.std(0)  # each of the training targets; and back": (
        "y = (y - y.mean(0)) / y.std(0)  # 對每個訓練目標；之後再還原"
    ),
    # L010: pictures without their masks, and evaluation data at random
    "of the training's pictures and masks one was flipped or rotated in {times:.0f} readings in "
    "which the other stayed as it was, and both together in none": (
        "訓練的影像與遮罩有 {times:.0f} 次讀取只有其一被翻轉或旋轉而另一個不變，"
        "兩者一起改變的次數為零"
    ),
    "The augmentation is of the picture or of the mask, and not of both.": (
        "資料增強只作用於影像或遮罩之一，而非兩者。"
    ),
    "if torch.rand(()) < 0.5:\n    picture, mask = picture.flip(-1), mask.flip(-1)": (
        "if torch.rand(()) < 0.5:\n    picture, mask = picture.flip(-1), mask.flip(-1)"
    ),
    "pictures that are the same after they are turned": "翻轉後仍相同的影像",
    "{share:.0%} of the samples of `{loader}` are other inputs the next time they are read, with "
    "the same target: they are augmented": (
        "`{loader}` 的樣本中有 {share:.0%} 下一次讀取時輸入不同而目標相同：它們經過了資料增強"
    ),
    "The data for evaluation are made by the transforms of the training.": (
        "用於評估的資料是由訓練的轉換產生的。"
    ),
    "Dataset(test_files, transform=standardize)  # nothing that is random": (
        "Dataset(test_files, transform=standardize)  # 不含任何隨機的步驟"
    ),
    "samples that are made anew each time": "每次重新產生的樣本",
    "Readings in which one of picture and mask is turned and the other is not.": (
        "影像與遮罩只有其一被翻轉的讀取次數。"
    ),
    "Readings in which both are turned.": "兩者都被翻轉的讀取次數。",
    "The part of a loader's samples that are other inputs each time they are read.": (
        "載入器的樣本中，每次讀取輸入都不同的比例。"
    ),
    # F013
    "on the way to the loss the output {before} of {place} is reshaped to {after}, in which the "
    "axis of {axis} lies elsewhere: it has other elements now": (
        "在通往損失的途中，{place} 的輸出 {before} 被 reshape 成 {after}，"
        "其中大小為 {axis} 的軸換了位置：它現在含有別的元素"
    ),
}
